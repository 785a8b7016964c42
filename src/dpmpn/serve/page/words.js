// Elements and the words in them. Names may hold anything: they become text, never HTML.
export const byId = (id) => document.getElementById(id);

// An element; attributes that are functions hear the event of their name, those that are null or false are left out.
export function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const button = (onPress, ...children) => made("button", { type: "button", click: onPress }, ...children);

// On one line, and without marks that would turn what stands around it.
export const clean = (text) =>
  text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "").replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "�");

// A name; a long one is broken where its parts meet.
export function named(text, kind = null) {
  const parts = clean(text).split(/(?<=[^_/][_/])(?=[^_/])|(?=\.\D)/);
  return made("bdi", { class: kind }, ...parts.flatMap((part, at) => (at ? [made("wbr"), part] : [part])));
}

// A question with the place of its answer open.
export function questionParts(head, relation, inverse) {
  const parts = [named(head), " ", made("i", {}, named(relation)), " ", "?"];
  return inverse ? parts.reverse() : parts;
}

export function questionText(head, relation, inverse) {
  const parts = [clean(head), clean(relation), "?"];
  return (inverse ? parts.reverse() : parts).join(" ");
}

export const factParts = ({ head, relation, tail }) =>
  [named(head.label), " ", made("i", {}, named(relation.label)), " ", named(tail.label)];

export const count = (n, one, many = `${one}s`) => (n === 1 ? `1 ${one}` : `${n.toLocaleString("en")} ${many}`);

// Unlike shares, probabilities differ where they are small.
export function part(part) {
  if (part >= 0.995 && part < 1) return ">99%";
  if (part >= 0.0995) return `${Math.round(100 * part)}%`;
  if (part >= 0.00095) return `${(100 * part).toFixed(1)}%`;
  return part > 0 ? "<0.1%" : "0%";
}

let timer;
// Say something to those who hear the page.
export function announce(text) {
  clearTimeout(timer);
  byId("status").textContent = "";
  timer = setTimeout(() => (byId("status").textContent = text), 60);
}
