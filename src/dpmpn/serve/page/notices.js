// What went wrong, where it is seen, and what can be done about it.
import { byId, button, clean, made, named } from "./words.js";

// Problems beside a field: a sentence and names that were perhaps meant, as buttons.
export function fieldProblem(field, words, near = [], onNear = () => {}) {
  const room = byId(`${field}-problem`);
  byId(field).toggleAttribute("aria-invalid", false);
  room.replaceChildren();
  if (!words) return;
  byId(field).setAttribute("aria-invalid", "true");
  room.append(made("span", {}, words));
  if (near.length) {
    const chips = near.map((name) => made("li", {}, button(() => onNear(name), named(name))));
    room.append(made("ul", { class: "chips", "aria-label": "Did you mean" }, ...chips));
  }
}

export function clearProblems() {
  for (const room of document.querySelectorAll(".problem")) {
    fieldProblem(room.id.replace("-problem", ""), "");
  }
  byId("notice").replaceChildren();
}

// A problem of the whole page, or of a part of it.
export function showProblem(room, words, ...actions) {
  const notice = made("div", { class: "notice", role: "alert" }, made("p", {}, words));
  if (actions.length) notice.append(made("p", {}, ...actions));
  room.replaceChildren(notice);
  return notice;
}

export function sentenceOf(problem) {
  const message = clean(problem.message ?? `${problem}`);
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.?!]$/.test(sentence) ? sentence : `${sentence}.`;
}
