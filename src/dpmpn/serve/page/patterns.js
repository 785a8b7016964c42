// What the model has learnt about the relation of a question: asked for when it is opened, as it takes a moment.
import { post } from "./api.js";
import { sentenceOf, showProblem } from "./notices.js";
import { announce, button, clean, count, made, named, part } from "./words.js";

export function learntAbout({ relation, inverse }, label) {
  const told = made("div", { "aria-live": "polite" });
  const words = made("summary", {}, "What the model has learnt about ", named(label));
  const learnt = made("details", { class: "learnt", toggle: () => learnt.open && !told.hasChildNodes() && fill() }, words, told);

  async function fill() {
    told.replaceChildren(made("p", { class: "small" }, "Asking for facts that are hidden from it…"));
    try {
      const reply = await post("/api/v1/patterns", { relation, inverse });
      told.replaceChildren(...rows(reply.learnt));
      announce(`${count(reply.learnt.patterns.length, "pattern")} of ${clean(label)}.`);
    } catch (error) {
      showProblem(told, sentenceOf(error), button(fill, "Try again"));
    }
  }
  return learnt;
}

function rows({ questions, reached, found, patterns }) {
  if (!patterns.length) return [made("p", {}, "Nothing: no path led to an answer that is stated.")];
  const asked = `${count(questions, "fact")} asked for, each hidden; attention reached ${reached} of them along ${count(found, "pattern")}.`;
  return [made("p", { class: "small" }, asked), made("ol", {}, ...patterns.map(row))];
}

function row({ weight, sentence, examples, answers, support, confidence, validation }) {
  const held = validation?.confidence ?? null;
  const told = confidence === null
    ? "It leads to no answer in the graph."
    : `Of ${count(answers, "answer")} that it leads to, ${support.toLocaleString("en")} are stated (${part(confidence)})` +
      `${held === null ? "" : `; of new answers to validation questions ${part(held)} are right`}.`;
  const example = examples[0].labels.map(clean).join(" → ");
  return made("li", {}, made("b", {}, part(weight)), " ", clean(sentence),
    made("div", { class: "small" }, told), made("div", { class: "small" }, `For example: ${example}`));
}
