// What the graph says about an entity: its names, types and facts, a page at a time.
import { get } from "./api.js";
import { button, count, factParts, made, named } from "./words.js";

const PAGE = 10; // facts at a time

export const lookUp = (name, signal, limit = PAGE) => get("/api/v1/entity", { name, limit }, signal);

export function entityParts(entity, onEntity) {
  const { name, label, description, types, total } = entity;
  const parts = [];
  if (name !== label) parts.push(made("p", { class: "small" }, "Identifier: ", named(name)));
  if (types.length) parts.push(made("p", { class: "small" }, types.join(", ")));
  if (description) parts.push(made("p", {}, named(description)));
  const facts = total ? `${count(total, "fact")} in the graph:` : "The graph has no facts about this entity.";
  parts.push(made("p", { class: "small" }, facts));
  if (total) parts.push(factList(entity, onEntity));
  return parts;
}

function factList(entity, onEntity) {
  const list = made("ul", { class: "facts" }), room = made("div", {}, list);
  const more = button(addMore, "");
  let shown = 0;

  function add(facts) {
    for (const fact of facts) list.append(made("li", {}, ...linked(fact, entity.name, onEntity)));
    shown += facts.length;
    more.textContent = `Show ${count(entity.total - shown, "more fact")}`;
    more.hidden = shown >= entity.total || !facts.length;
  }

  async function addMore() {
    more.disabled = true;
    try {
      const { facts } = await get("/api/v1/entity", { name: entity.name, limit: 50, offset: shown });
      add(facts);
    } catch (error) {
      more.textContent = `${error.message} Try again`;
    }
    more.disabled = false;
  }

  room.append(more);
  add(entity.facts);
  return room;
}

// The other end of a fact leads on.
function linked(fact, own, onEntity) {
  const parts = factParts(fact);
  const other = fact.head.name === own ? fact.tail : fact.head;
  if (other.name === own) return parts;
  const link = button(() => onEntity(other), named(other.label));
  link.className = "plain";
  parts[other === fact.head ? 0 : 4] = link;
  return parts;
}
