// Why an answer was given: the picture that plays the reasoning, what is told beside it, and files to keep.
import { download, post } from "./api.js";
import { decisiveParts } from "./decisive.js";
import { entityParts, lookUp } from "./entity.js";
import { makePlayer } from "./player.js";
import { sentenceOf, showProblem } from "./notices.js";
import { learntAbout } from "./patterns.js";
import { announce, button, byId, clean, made, named } from "./words.js";
import { makeZoom } from "./zoom.js";

const shown = { player: null, picture: null, key: "" };

// `view` says what is asked and how it is looked at; `hears` are told what is done with it.
export async function showExplanation(view, answer, signal, hears) {
  const { head, relation, inverse, full, step } = view;
  const key = JSON.stringify([head, relation, inverse, answer]);
  const isShown = key === shown.key && (!full || shown.picture.data.views.full);
  if (!isShown) {
    const picture = await post("/api/v1/picture", { head, relation, inverse, answer, full }, signal);
    if (signal.aborted) return;
    const isAnother = key !== shown.key, before = isAnother ? { t: step, path: null } : { ...shown.player.state };
    draw(view, picture, before, hears);
    shown.key = key;
    if (isAnother) announce(`Explanation of ${clean(picture.answer.label)}. ${byId("verdict").textContent}`);
  } else apply(full ? "full" : "pruned", step);
  const last = shown.picture.data.steps;
  if (step > last) hears.onLook({ step: last }); // what the address says is what is seen
}

export function forgetExplanation() {
  shown.player?.end();
  Object.assign(shown, { player: null, picture: null, key: "" });
  byId("explanation").replaceChildren();
}

function apply(view, step) {
  const { state, showView, show } = shown.player, t = step === null ? null : Math.min(step, shown.picture.data.steps);
  if (state.view !== view) showView(view);
  if (state.t !== t) show(t);
}

// `before` is what was looked at, where the same is drawn again with more in it.
function draw(view, picture, before, hears) {
  const { html, data, answer, description, verdict } = picture, room = byId("explanation");
  const focused = room.contains(document.activeElement) ? document.activeElement.dataset.view : null;
  shown.player?.end();
  const content = made("div", { class: "content" });
  // The server escapes every name in it, and the page's policy lets no script of it run.
  content.innerHTML = html;
  const title = made("h2", { id: "explanation-title", tabindex: "-1" }, "Why ", named(answer.label), "?");
  const told = made("p", { id: "verdict" });
  told.innerHTML = verdict;
  const card = made("section", { id: "card", "aria-label": "An entity of the picture", hidden: true });
  content.querySelector("#paths").before(card);
  const { head, relation, inverse } = view, decides = decisiveParts({ head, relation, inverse }, answer.name);
  room.replaceChildren(
    made("div", { class: "titled" }, title, files(picture.files, view, answer.name)), told, ...decides, content,
  );
  room.append(learntAbout(view, view.relation));
  if (description) told.before(made("p", { class: "small" }, named(answer.label), ": ", named(description)));
  shown.picture = picture;
  shown.player = makePlayer(content, data, {
    view: view.full ? "full" : "pruned",
    t: before.t === null ? null : Math.min(before.t, data.steps),
    onChange: ({ view: name, t }) => hears.onLook({ full: name === "full", step: t }),
    onMissing: hears.onFull,
    onNode: (name, place, group) => showCard(picture.names[name][place], group, hears),
  });
  for (const figure of content.querySelectorAll("figure")) makeZoom(figure);
  if (before.path !== null) shown.player.choosePath(before.path);
  if (focused) content.querySelector(`button[data-view=${focused}]`).focus();
}

// ---- The card of a node

async function showCard(name, group, { onAsk, onWhyNot }) {
  const card = byId("card");
  const close = () => {
    card.hidden = true;
    group.focus();
  };
  card.onkeydown = (event) => event.key === "Escape" && close();
  const closing = button(close, "✕");
  closing.setAttribute("aria-label", "Close the card");
  const label = clean(group.getAttribute("aria-label")), isAnswer = name === shown.picture.answer.name;
  const title = made("h3", { id: "card-title", tabindex: "-1" }, named(label));
  const actions = made("p", { class: "actions" }, button(() => onAsk(name), "Ask from here"));
  if (!isAnswer) actions.append(button(() => onWhyNot(name), "Why not this one?"));
  const told = made("div", { "aria-busy": "true" }, made("p", { class: "small" }, "Reading its facts…"));
  card.replaceChildren(made("div", { class: "titled tight" }, title, closing), actions, told);
  card.hidden = false;
  title.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
  try {
    told.replaceChildren(...entityParts(await lookUp(name), (other) => onAsk(other.name)));
  } catch (error) {
    showProblem(told, sentenceOf(error), button(() => showCard(name, group, { onAsk, onWhyNot }), "Try again"));
  }
  told.removeAttribute("aria-busy");
}

// ---- Files to keep

function files(suffixes, { head, relation, inverse }, answer) {
  const query = new URLSearchParams({ head, relation, inverse, answer });
  const links = suffixes.map((suffix) => {
    const address = `/api/v1/explanation.${suffix}?${query}`, words = suffix.toUpperCase();
    return made("li", {}, made("a", { href: address, download: true, click: (event) => save(event, address) }, words));
  });
  const title = made("span", { id: "files-title" }, "Save as");
  return made("div", { class: "files" }, title, made("ul", { "aria-labelledby": "files-title" }, ...links));
}

// Fetched by the page, so that a token goes along and problems are told.
async function save(event, address) {
  event.preventDefault();
  const link = event.currentTarget;
  link.setAttribute("aria-busy", "true");
  try {
    const { blob, name } = await download(address);
    const url = URL.createObjectURL(blob);
    made("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    announce(`Saved ${name}.`);
  } catch (error) {
    showProblem(byId("notice"), sentenceOf(error));
  }
  link.removeAttribute("aria-busy");
}
