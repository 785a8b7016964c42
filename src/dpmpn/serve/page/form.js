// The question: whom it is about, found as one types, and what is asked, with what fits best first.
import { get } from "./api.js";
import { makeCombobox } from "./combobox.js";
import { clearProblems, fieldProblem } from "./notices.js";
import { byId, clean, count, made, named, questionParts, questionText } from "./words.js";

const MOST_FOUND = 12;
const MOST_OFFERED = 200; // relations in the list at a time; typing narrows them
const TITLES = { head: "Has facts already", like: "Similar entities have facts", other: "All others" };

const fold = (text) => text.toLowerCase().replaceAll("_", " ").trim();

// Offers entities in a field; used for heads and for "why not".
export function entityCombobox(input, hears) {
  const load = async (q, signal) => {
    const found = await get("/api/v1/entities", { q, limit: MOST_FOUND }, signal);
    const options = found.map((entity) => ({ entity, text: clean(entity.label), parts: () => foundParts(entity) }));
    return [{ title: "", options }];
  };
  const nothing = (text) => `No name contains “${clean(text).slice(0, 60)}”.`;
  return makeCombobox(input, { load, nothing, ...hears });
}

function foundParts({ name, label, description, facts }) {
  const more = [name === label ? "" : clean(name), description ? clean(description) : ""].filter(Boolean).join(" · ");
  const parts = [named(label, "label"), made("small", {}, count(facts, "fact"))];
  return more ? [...parts, made("small", { class: "more" }, more)] : parts;
}

const offered = { head: null, relations: null };

// The questions for a head, the best first; kept, as they are looked at more than once.
export async function relationsFor(head, signal) {
  if (offered.head !== head || !offered.relations) {
    const relations = await get("/api/v1/relations", head ? { head } : {}, signal);
    Object.assign(offered, { head, relations });
  }
  return offered.relations;
}

export function makeForm({ onHead, onAsk }) {
  const head = byId("head"), relation = byId("relation");
  const chosen = { head: { name: "", text: "" }, relation: { name: "", inverse: false, text: "" } };

  const headName = () => (head.value === chosen.head.text ? chosen.head.name : head.value.trim());
  const headWords = () => clean(head.value.trim() || "it");

  entityCombobox(head, {
    onChoose: ({ entity }) => onHead(entity.name),
    onType: () => fieldProblem("head", ""),
  });

  const optionOf = (offer) => ({
    offer,
    text: questionText(headWords(), offer.label, offer.inverse),
    parts: () => [
      made("span", { class: "label" }, ...questionParts(headWords(), offer.label, offer.inverse)),
      made("small", {}, count(offer.count, "fact")),
    ],
  });

  // What a question says besides its head: the words of its relation and, where a question mark tells, its direction.
  function understood(typed) {
    const text = typed.trim(), inverse = text.startsWith("?") ? true : text.endsWith("?") ? false : null;
    const words = text.replace(/^\?\s*|\s*\?$/g, "");
    for (const label of [head.value, chosen.head.text, chosen.head.name].map(fold).filter(Boolean)) {
      if (inverse !== true && fold(words).startsWith(`${label} `)) return { words: words.slice(label.length + 1), inverse };
      if (inverse !== false && fold(words).endsWith(` ${label}`)) return { words: words.slice(0, -label.length - 1), inverse };
    }
    return { words, inverse };
  }

  // What is typed is part of a relation's name or of the question's words.
  function fits(offer, typed) {
    const { words, inverse } = understood(typed), isPart = (name) => fold(name).includes(fold(words));
    if ((inverse ?? offer.inverse) === offer.inverse && [offer.label, offer.name].some(isPart)) return true;
    return typed.includes("?") && fold(questionText(headWords(), offer.label, offer.inverse)).includes(fold(typed));
  }

  async function offersNow(signal) {
    try {
      return await relationsFor(headName(), signal);
    } catch (error) {
      if (error.code !== "unknown_entity" && error.code !== "ambiguous_name") throw error;
      return relationsFor("", signal); // what is wrong with the name is said when it is asked
    }
  }

  makeCombobox(relation, {
    debounce: 30,
    load: async (typed, signal) => {
      const text = relation.value === chosen.relation.text ? "" : typed.trim();
      const fitting = (await offersNow(signal)).filter((offer) => !text || fits(offer, text)).slice(0, MOST_OFFERED);
      return Object.entries(TITLES).map(([used, title]) => ({
        title: headName() ? title : "",
        options: fitting.filter((offer) => offer.used === used).map(optionOf),
      }));
    },
    nothing: (text) => `No relation name contains “${clean(text).slice(0, 60)}”.`,
    onChoose: ({ offer, text }) => {
      chosen.relation = { ...offer, text };
      fieldProblem("relation", "");
    },
    onType: () => fieldProblem("relation", ""),
  });

  // What was typed may be a relation, or the words of a question.
  async function typedRelation() {
    if (relation.value === chosen.relation.text) return chosen.relation;
    const typed = relation.value.trim(), { words, inverse } = understood(typed), offers = await offersNow();
    const isNamed = (offer, text) => [offer.name, offer.label].some((each) => fold(each) === fold(text));
    const same = (offer) => isNamed(offer, typed) || ((inverse ?? offer.inverse) === offer.inverse && isNamed(offer, words));
    const found = offers.filter(same).sort((one, other) => one.inverse - other.inverse);
    const fitting = found.length ? found : offers.filter((offer) => fits(offer, typed));
    const isClear = found.length ? new Set(found.map(({ name }) => name)).size === 1 : fitting.length === 1;
    return isClear ? fitting[0] : { name: words || typed, inverse: inverse ?? false };
  }

  byId("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearProblems();
    if (!head.value.trim()) {
      fieldProblem("head", "Type a name first: whom or what is the question about?");
      return head.focus();
    }
    if (!relation.value.trim()) return onHead(headName());
    let { name, inverse } = { name: relation.value.trim(), inverse: false };
    try {
      ({ name, inverse } = await typedRelation());
    } catch {
      // The question itself will tell what is wrong.
    }
    onAsk({ head: headName(), relation: name, inverse });
  });

  return {
    setHead(name, label) {
      chosen.head = { name, text: clean(label) };
      head.value = chosen.head.text;
    },
    setRelation(name, label, inverse) {
      const text = name ? questionText(headWords(), label, inverse) : "";
      chosen.relation = { name, label, inverse, text };
      relation.value = text;
    },
    // The same question about another head.
    keepRelation() {
      const { name, label, inverse, text } = chosen.relation;
      if (relation.value === text) this.setRelation(name, label, inverse);
    },
  };
}
