// Which facts decide about an answer, and what if one of them were not there: found by asking again.
import { post } from "./api.js";
import { sentenceOf, showProblem } from "./notices.js";
import { announce, button, clean, made, named } from "./words.js";

// A button that asks what decides, and the place where it is told.
export function decisiveParts(question, answer) {
  const told = made("div", { id: "decisive", "aria-live": "polite" });
  const ask = button(() => show(question, answer, told, ask), "Which facts decide?");
  return [made("p", { class: "actions" }, ask), told];
}

async function show(question, answer, told, ask) {
  ask.disabled = true;
  told.setAttribute("aria-busy", "true");
  told.replaceChildren(made("p", { class: "small" }, "Asking again without some facts, and with some alone…"));
  try {
    const found = await post("/api/v1/decisive", { ...question, answer });
    told.replaceChildren(...parts(question, answer, found));
    announce(clean(found.text));
  } catch (error) {
    showProblem(told, sentenceOf(error), button(() => show(question, answer, told, ask), "Try again"));
  }
  told.removeAttribute("aria-busy");
  ask.disabled = false;
}

function parts(question, answer, { necessary, sufficient, text }) {
  // The sentences of the text without the facts, which are set off in it and stand in lists here.
  const lines = text.split("\n").map((line) => ({ line: clean(line.trim()), isFact: line.startsWith("    ") }));
  const said = lines.filter(({ line, isFact }) => line && !isFact).map(({ line }) => line);
  const lists = { "Necessary:": necessary, "Sufficient:": sufficient };
  return said.flatMap((line) => {
    const start = Object.keys(lists).find((each) => line.startsWith(each)), facts = lists[start];
    const told = made("p", {}, line);
    return facts ? [told, made("ul", { class: "facts" }, ...facts.map((fact) => factLine(question, answer, fact)))] : [told];
  });
}

function factLine(question, answer, { head, relation, tail, head_label, relation_label, tail_label }) {
  const outcome = made("span", { class: "small", role: "status" });
  const ask = button(async () => {
    ask.disabled = true;
    try {
      const remove = [{ head, relation, tail }];
      outcome.textContent = ` ${clean((await post("/api/v1/what-if", { ...question, answer, remove })).text)}`;
    } catch (error) {
      outcome.textContent = ` ${sentenceOf(error)}`;
    }
    ask.disabled = false;
  }, "What if not?");
  const words = [named(head_label), " ", named(relation_label), " ", named(tail_label), " "];
  return made("li", {}, ...words, ask, outcome);
}
