// The ranked answers: how probable each is, and whether the graph or a held-out fact states it.
import { entityCombobox } from "./form.js";
import { button, byId, clean, count, made, named, part, questionParts } from "./words.js";

const MOST = 1000; // answers that the server gives
const SPLITS = { valid: "validation", test: "test" };
let chosen = { name: "", text: "" }; // in the field of "why not"

export function showAnswers({ question, answers, notes, milliseconds }, { isNew, top, onAnswer, onNew, onMore, onWhyNot }) {
  const { head_label, relation_label, inverse } = question;
  const asked = questionParts(head_label, relation_label, inverse);
  const title = made("h2", { id: "answers-title", tabindex: "-1" }, ...asked);
  const rows = answers.map((answer) => made("li", {}, row(answer, onAnswer)));
  const list = made("ol", { class: "answers" }, ...rows);
  const expected = notes.map((note) => made("p", { class: "small" }, `Note: ${clean(note)}.`));
  const parts = [title, ...expected, newSwitch(isNew, onNew)];
  if (answers.length) parts.push(list);
  else parts.push(made("p", {}, isNew ? "No new answer fits." : "No answer fits."));
  if (answers.length >= top && top < MOST) parts.push(button(onMore, "Show more answers"));
  const took = Math.max(1, Math.round(milliseconds));
  parts.push(made("p", { class: "small" }, `Answered in ${took} ms.`), whyNotForm(onWhyNot));
  byId("answers").replaceChildren(...parts);
}

export function markAnswer(name) {
  for (const each of document.querySelectorAll(".answers button")) {
    if (each.dataset.name === name) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
}

function row(answer, onAnswer) {
  const bar = made("i");
  const { known, probability, score } = answer;
  bar.style.width = known ? "0" : `${100 * (probability ?? score)}%`;
  const element = button(
    () => onAnswer(answer.name),
    made("span", { class: "rank" }, `${answer.rank}`),
    made("span", { class: "label" }, named(answer.label)),
    made("b", {}, worth(answer)),
    made("span", { class: "bar", "aria-hidden": "true" }, bar),
  );
  element.dataset.name = answer.name;
  element.title = answer.name === answer.label ? clean(answer.label) : `${clean(answer.label)} (${clean(answer.name)})`;
  const told = [...measured(answer), ...marks(answer)];
  if (told.length) element.append(made("span", { class: "marks" }, ...told));
  return element;
}

// What stands beside an answer: how probable it is or, where that is unknown, what the model gives it.
function worth({ known, probability, score }) {
  if (known) return "known";
  return probability === null ? `score ${score >= 0.0005 ? score.toFixed(3) : "<0.001"}` : part(probability);
}

function measured({ probability, probability_low: low, probability_high: high, probability_if_missing: given, cases }) {
  if (probability === null) return [];
  const texts = [`${part(low)} to ${part(high)}, ${count(cases, "case")}`];
  if (given - probability > 0.05) texts.push(`${part(given)} if an answer is missing`);
  return texts.map((text) => made("span", { class: "mark" }, text));
}

function marks({ known, held_out, through_unseen }) {
  const told = [];
  if (known) told.push(made("span", { class: "mark known" }, "known: in the graph"));
  if (held_out) told.push(made("span", { class: "mark held-out" }, `correct: held-out ${SPLITS[held_out]} fact`));
  if (through_unseen > 0.005) {
    told.push(made("span", { class: "mark" }, `${part(through_unseen)} through entities the model was not trained on`));
  }
  return told;
}

function newSwitch(isNew, onNew) {
  const box = made("input", { type: "checkbox", role: "switch", id: "new", change: () => onNew(box.checked) });
  box.checked = isNew;
  return made("p", { class: "switch" }, box, made("label", { for: "new" }, "new answers only"));
}

function whyNotForm(onWhyNot) {
  const input = made("input", {
    id: "candidate", type: "text", placeholder: "a name", maxlength: "4096", spellcheck: "false",
    "aria-describedby": "candidate-problem",
  });
  const form = made(
    "form", { id: "why-not", autocomplete: "off", novalidate: true, "aria-label": "Why not another answer" },
    made("label", { for: "candidate" }, "Why not …?"),
    made("div", { class: "combobox" }, input),
    made("button", { type: "submit" }, "Explain"),
    made("div", { id: "candidate-problem", class: "problem", role: "alert" }),
  );
  queueMicrotask(() => entityCombobox(input, { // once it stands in the page, its label is known
    onChoose: ({ entity, text }) => {
      chosen = { name: entity.name, text };
      onWhyNot(entity.name);
    },
  }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text) onWhyNot(input.value === chosen.text ? chosen.name : text);
    else input.focus();
  });
  return form;
}

export const toldAnswers = ({ answers }) =>
  answers.length
    ? `${count(answers.length, "answer")}. First: ${clean(answers[0].label)}, ${worth(answers[0])}.`
    : "No answers.";
