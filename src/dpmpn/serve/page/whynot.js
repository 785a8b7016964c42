// Why another entity is not the answer: where its attention was lost.
import { post } from "./api.js";
import { fillBars } from "./player.js";
import { announce, button, byId, clean, made, named } from "./words.js";

export async function showWhyNot(question, candidate, signal, onClose) {
  const room = byId("why-not-told");
  const { why_not, text } = await post("/api/v1/why-not", { ...question, candidate }, signal);
  if (signal.aborted) return;
  const title = made("h2", { id: "why-not-title", tabindex: "-1" }, "Why not ", named(why_not.label), "?");
  const parts = [made("div", { class: "titled tight" }, title, closing(onClose)), made("p", { class: "why-not" }, clean(text))];
  if (why_not.attention?.some((part) => part > 0)) parts.push(...bars(why_not));
  room.replaceChildren(...parts);
  room.hidden = false;
  announce(`Why not ${clean(why_not.label)}? ${clean(text)}`);
}

function closing(onClose) {
  const close = button(onClose, "✕");
  close.setAttribute("aria-label", "Close why not");
  return close;
}

function bars({ label, attention }) {
  const colours = attention.map(() => "var(--accent)");
  return [
    made("p", { class: "small" }, "The attention at ", named(label), " at each time:"),
    fillBars(made("ol", { class: "bars" }), attention, 0, colours),
  ];
}

export function hideWhyNot() {
  const room = byId("why-not-told");
  room.hidden = true;
  room.replaceChildren();
}
