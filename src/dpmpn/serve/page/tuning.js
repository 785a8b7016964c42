// Which model answers while another one is in the making: a line with a bar, and when it changed over.
import { get } from "./api.js";
import { announce, button, byId, clean, made } from "./words.js";

const EVERY = 2000; // milliseconds

// Tells how tuning goes on; `onChange` is called when another model answers, `onAgain` when a person wants to ask it.
export async function watchTuning({ onChange, onAgain }) {
  let model = null;
  for (;;) {
    const now = await get("/api/v1/tuning", {});
    const isChanged = model !== null && now.model !== model;
    model = now.model;
    if (isChanged) {
      onChange();
      announce("The model tuned to these facts now answers.");
    }
    show(now, onAgain);
    if (now.state !== "tuning") return;
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

function show({ model, state, done = 0, total = 0, eta_seconds, mrr, tuned_mrr, message }, onAgain) {
  const room = byId("tuning");
  room.hidden = state === "off";
  if (room.hidden) return;
  const isTuned = model === "tuned";
  const scores = isTuned && tuned_mrr ? ` Validation MRR ${tuned_mrr.toFixed(3)}, previously ${mrr.toFixed(3)}.` : "";
  const who = isTuned ? `The model tuned to these facts is answering.${scores}` : "The model for any graph is answering.";
  const parts = [made("span", {}, who)];
  if (state === "tuning") {
    const left = eta_seconds ? `, at most ${waiting(eta_seconds)} left` : "";
    parts.push(
      made("span", {}, `${isTuned ? "Tuning continues" : "It is being tuned to these facts"}${left}.`),
      made("progress", { max: `${total || 1}`, value: `${done}`, "aria-label": "Tuning" }),
    );
  } else if (state === "failed") parts.push(made("span", {}, `Tuning failed: ${clean(message ?? "")}`));
  else if (!isTuned) parts.push(made("span", {}, "Tuning brought no clear improvement."));
  if (isTuned && !byId("result").hidden && room.dataset.model === "any-graph") room.dataset.again = "1";
  if (room.dataset.again) {
    parts.push(button(() => {
      delete room.dataset.again;
      show({ model, state, done, total, eta_seconds, mrr, tuned_mrr, message }, onAgain);
      onAgain();
    }, "Ask again"));
  }
  room.dataset.model = model;
  room.replaceChildren(...parts);
}

const waiting = (seconds) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`);
