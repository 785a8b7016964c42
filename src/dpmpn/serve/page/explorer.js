// The explorer: keeps what is seen and the address in step, and asks the server for what is not there yet.
import { get, isAbort, post } from "./api.js";
import { push, readView, replace, viewOf } from "./address.js";
import { markAnswer, showAnswers, toldAnswers } from "./answers.js";
import { entityParts, lookUp } from "./entity.js";
import { forgetExplanation, showExplanation } from "./explanation.js";
import { makeForm, relationsFor } from "./form.js";
import { forgetModel, modelCard, showModel } from "./model.js";
import { clearProblems, fieldProblem, sentenceOf, showProblem } from "./notices.js";
import { announce, button, byId, clean, made, named, questionParts, questionText } from "./words.js";
import { watchTuning } from "./tuning.js";
import { hideWhyNot, showWhyNot } from "./whynot.js";

const TOP = 10;
const OFFERED = 6; // questions of a kind that can be asked with one click
const SLOW = 200; // milliseconds after which waiting is shown

let view = viewOf({}), top = TOP, showing = new AbortController();
let asked = null, reply = null; // the question whose answers are shown, and they
const form = makeForm({
  onHead: (head) => go(viewOf({ head })),
  onAsk: (question) => go(viewOf({ ...question, isNew: view.isNew })),
});

// ---- From view to view

function go(next) {
  push(next);
  return show(next);
}

// Another look at the same: nothing to go back to, and nothing to ask for.
function look(changes) {
  view = { ...view, ...changes };
  replace(view);
}

async function show(next) {
  view = next;
  showing.abort();
  const { signal } = (showing = new AbortController());
  clearProblems();
  const state = !view.head ? "start" : !view.relation ? "about" : "result";
  try {
    if (state === "start") await showStart(signal);
    else if (state === "about") await showAbout(signal);
    else await showResult(signal);
  } catch (error) {
    if (!signal.aborted && !isAbort(error)) tellProblem(error);
  }
  showModel().catch(() => {}); // when it is missing, more than this has been told
}

function reveal(state, title) {
  for (const id of ["start", "about", "result"]) byId(id).hidden = id !== state;
  document.title = title ? `${title} – dpmpn explorer` : "dpmpn explorer";
  // What had the focus may be gone.
  const { activeElement: focused } = document, isLost = focused === document.body || focused.closest("[hidden]");
  if (isLost && hasBegun) byId(state === "result" ? "answers-title" : `${state}-title`)?.focus({ preventScroll: true });
}
let hasBegun = false;

async function showStart(signal) {
  form.setHead("", "");
  form.setRelation("", "", false);
  reveal("start", "");
  await fillStart(signal);
}

async function fillStart(signal) {
  const room = byId("examples");
  if (room.childElementCount) return;
  const best = get("/api/v1/entities", { q: "", limit: 8 }, signal);
  const [{ dataset, examples }, entities] = await Promise.all([modelCard(), best]);
  const questions = examples.map(({ head_label, relation_label, ...question }) =>
    chip(viewOf(question), ...questionParts(head_label, relation_label, question.inverse)));
  const isKept = dataset.test + dataset.valid > 0;
  const words = isKept ? "Questions whose answers were hidden from the model" : "Questions to start with";
  if (questions.length) room.append(made("h3", {}, words), made("ul", { class: "chips" }, ...questions));
  room.append(
    made("h3", {}, "Or start with one of the best-connected entities"),
    made("ul", { class: "chips" }, ...entities.map(({ name, label }) => chip(viewOf({ head: name }), named(label)))),
  );
}

const chip = (next, ...parts) => made("li", {}, button(() => go(next), ...parts));

// ---- A head without a question yet

async function showAbout(signal) {
  const [entity, relations] = await waitingIn("main", () =>
    Promise.all([lookUp(view.head, signal), relationsFor(view.head, signal)]));
  if (signal.aborted) return;
  form.setHead(entity.name, entity.label);
  form.keepRelation();
  look({ head: entity.name });
  const offers = (used) => relations.filter((offer) => offer.used === used).slice(0, OFFERED).map(({ name, label, inverse }) =>
    chip(viewOf({ head: entity.name, relation: name, inverse }), ...questionParts(entity.label, label, inverse)));
  const own = offers("head"), like = offers("like"), others = own.length + like.length ? [] : offers("other");
  const groups = [["The graph has answers to these", own], ["The graph has no answers to these, but similar entities have some", like], ["Ask", others]];
  byId("about").replaceChildren(
    made("h2", { id: "about-title", tabindex: "-1" }, named(entity.label)),
    ...groups.filter(([, chips]) => chips.length).flatMap(([words, chips]) =>
      [made("h3", {}, words), made("ul", { class: "chips" }, ...chips)]),
    made("p", { class: "small" }, `These are the most likely questions; the field above lists all ${relations.length}.`),
    made("h3", {}, "What the graph says"),
    ...entityParts(entity, (other) => go(viewOf({ head: other.name }))),
  );
  reveal("about", clean(entity.label));
  announce(`${clean(entity.label)}. ${own.length + like.length + others.length} likely questions.`);
}

// ---- A question: its answers, then why

async function showResult(signal) {
  const { head, relation, inverse, isNew } = view;
  let question = { head, relation, inverse };
  const isAnother = !isShown(question);
  if (isAnother) top = TOP;
  if (isAnother || asked.isNew !== isNew || asked.top !== top) {
    reply = await waitingIn("main", () => post("/api/v1/ask", { ...question, top, new: isNew }, signal));
    if (signal.aborted) return;
    // By its identifiers it is the same tomorrow, whatever was typed.
    question = { head: reply.question.head, relation: reply.question.relation, inverse };
    look(question);
    asked = { ...question, top, isNew };
    if (isAnother) forgetExplanation();
    showReply();
  }
  const { head_label, relation_label } = reply.question;
  form.setHead(reply.question.head, head_label);
  form.setRelation(reply.question.relation, relation_label, inverse);
  const answer = view.answer || reply.answers[0]?.name;
  markAnswer(answer);
  reveal("result", questionText(head_label, relation_label, inverse));
  // The answers are seen before the rest is asked for.
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  if (!signal.aborted) await Promise.all([showWhy(answer, signal), showCandidate(question, signal)]);
}

const isShown = ({ head, relation, inverse }) =>
  asked?.head === head && asked.relation === relation && asked.inverse === inverse;

function showReply() {
  const wasSwitched = document.activeElement?.id === "new"; // the switch is made anew with the answers
  showAnswers(reply, {
    isNew: view.isNew,
    top,
    onAnswer: goToAnswer,
    onNew: (isNew) => go({ ...view, isNew, answer: "", step: null }),
    onMore: () => {
      top = top < 50 ? 50 : 1000;
      show(view);
    },
    onWhyNot: (whyNot) => go({ ...view, whyNot }),
  });
  if (wasSwitched) byId("new").focus();
  announce(toldAnswers(reply));
}

const hears = {
  onLook: look,
  onFull: () => {
    look({ full: true });
    show(view);
  },
  onAsk: (head) => go(viewOf({ head })),
  onWhyNot: (whyNot) => go({ ...view, whyNot }),
};

async function goToAnswer(answer) {
  await go({ ...view, answer, step: null });
  const title = byId("explanation-title");
  if (!title || !matchMedia("(max-width: 52rem)").matches) return;
  title.focus({ preventScroll: true }); // it stands below the answers
  title.scrollIntoView();
}

async function showWhy(answer, signal) {
  const room = byId("explanation");
  if (!answer) return forgetExplanation();
  const waiting = setTimeout(() => {
    if (!room.childElementCount) room.append(made("p", { class: "small" }, "Drawing how the model reached this answer…"));
  }, SLOW);
  try {
    await waitingIn("explanation", () => showExplanation(view, answer, signal, hears));
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    forgetExplanation();
    if (error.code === "unauthorised" || error.code === "gone") throw error;
    if (error.code === "not_reached") {
      const whyNot = button(() => go({ ...view, answer: "", whyNot: answer }), "Why not?");
      showProblem(room, `No attention reached “${clean(answer)}”, so there is nothing to explain.`, whyNot);
      return;
    }
    const others = (error.near ?? []).map((name) => button(() => go({ ...view, answer: name }), named(name)));
    if (error.code === "unknown_entity") {
      const first = button(() => go({ ...view, answer: "", step: null }), "Show the first answer");
      const said = `Nothing is called “${clean(answer)}”.${others.length ? " Did you mean:" : ""}`;
      return void showProblem(room, said, ...others, first);
    }
    showProblem(room, sentenceOf(error), ...(others.length ? others : [button(() => show(view), "Try again")]));
  } finally {
    clearTimeout(waiting);
  }
}

async function showCandidate(question, signal) {
  if (!view.whyNot) return hideWhyNot();
  const key = JSON.stringify([question, view.whyNot]), room = byId("why-not-told");
  if (room.dataset.key === key && !room.hidden) return;
  hideWhyNot();
  try {
    const close = () => go({ ...view, whyNot: "" }).then(() => byId("candidate")?.focus());
    await showWhyNot(question, view.whyNot, signal, close);
    room.dataset.key = key;
    const title = byId("why-not-title");
    if (title && hasBegun) {
      title.focus({ preventScroll: true });
      room.scrollIntoView({ block: "nearest" });
    }
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    if (error.code === "unauthorised" || error.code === "gone") throw error;
    const said = error.code === "unknown_entity" ? unknown("Nothing", view.whyNot, error.near) : sentenceOf(error);
    fieldProblem("candidate", said, error.near, (name) => go({ ...view, whyNot: name }));
  }
}

// ---- Waiting and problems

async function waitingIn(id, work) {
  const room = byId(id), timer = setTimeout(() => room.setAttribute("aria-busy", "true"), SLOW);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    room.removeAttribute("aria-busy");
  }
}

// Answers to another question would be misleading: help to begin stands in their place.
function hideOthers() {
  if (!byId("result").hidden && isShown(view)) return;
  for (const id of ["about", "result"]) byId(id).hidden = true;
  byId("start").hidden = false;
  fillStart(showing.signal).catch(() => {});
}

const unknown = (nothing, name, near) =>
  `${nothing} is called “${clean(name)}”. ${near.length ? "Did you mean:" : "Type part of the name and choose from the list."}`;

// The head is looked up first; the end of a long message may be cut off.
const isOfRelation = ({ code, message }) => code === "unknown_relation" || (code === "ambiguous_name"
  && (/ of the relation$/.test(message) || (view.relation !== view.head && message.startsWith(`'${view.relation}' is `))));

function tellProblem(error) {
  const again = button(() => show(view), "Try again"), isAmbiguous = error.code === "ambiguous_name";
  const several = (what, name) => `Several ${what}are called “${clean(name)}”. Which one do you mean?`;
  hideOthers();
  if (isOfRelation(error)) {
    form.setHead(view.head, view.head);
    form.setRelation(view.relation, view.relation, false);
    byId("relation").value = view.relation;
    const said = isAmbiguous ? several("relations ", view.relation) : unknown("No relation", view.relation, error.near);
    fieldProblem("relation", said, error.near, (name) => go({ ...view, relation: name }));
    byId("relation").focus();
  } else if (error.code === "unknown_entity" || isAmbiguous) {
    form.setHead(view.head, view.head);
    form.setRelation(view.relation, view.relation, view.inverse);
    const said = isAmbiguous ? several("", view.head) : unknown("Nothing", view.head, error.near);
    fieldProblem("head", said, error.near, (name) => go({ ...view, head: name }));
    byId("head").focus();
  } else showProblem(byId("notice"), sentenceOf(error), again);
}

// ---- Begin

addEventListener("popstate", () => show(readView()));
byId("home").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(viewOf({}));
});

async function begin() {
  await show(readView());
  hasBegun = true;
  watchTuning({ onChange: changeModel, onAgain: () => show(view) }).catch(() => {}); // a server that is gone is told elsewhere
}

// What is shown stays until it is asked again; whatever is asked from now on, the new model answers.
function changeModel() {
  asked = null;
  forgetModel();
  showModel().catch(() => {});
}
begin();
