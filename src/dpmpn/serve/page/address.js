// The view in the address bar: what is asked, which answer is looked at, and how.
const EMPTY = { head: "", relation: "", inverse: false, answer: "", whyNot: "", isNew: false, full: false, step: null };

export const viewOf = (changes) => ({ ...EMPTY, ...changes });

export function readView(search = location.search) {
  const given = new URLSearchParams(search), text = (key) => given.get(key) ?? "", is = (key) => /^(1|true)$/i.test(text(key));
  const step = /^\d{1,3}$/.test(text("step")) ? +text("step") : null;
  return viewOf({
    head: text("head"), relation: text("relation"), inverse: is("inverse"), answer: text("answer"),
    whyNot: text("why-not"), isNew: is("new"), full: is("full"), step,
  });
}

export function addressOf({ head, relation, inverse, answer, whyNot, isNew, full, step }) {
  const at = step === null ? "" : `${step}`;
  const parts = { head, relation, inverse, answer, "why-not": whyNot, new: isNew, full, step: at };
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(parts)) if (value) search.set(key, value === true ? "1" : value);
  return search.size ? `/?${search}` : "/";
}

// The same view twice would make going back do nothing.
export function push(view) {
  if (addressOf(view) !== location.pathname + location.search) history.pushState(null, "", addressOf(view));
}
export const replace = (view) => history.replaceState(null, "", addressOf(view));
