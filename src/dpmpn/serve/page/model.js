// The model card: what answers here, how it was trained and how well it did.
import { get } from "./api.js";
import { byId, clean, count, made } from "./words.js";

const METRICS = { mrr: "MRR", hits_at_1: "Hits@1", hits_at_3: "Hits@3", hits_at_10: "Hits@10" };

let card = null; // or the promise of it

// Asked for once for each model.
export function modelCard() {
  card ??= get("/api/v1/model", {}).catch((error) => {
    card = null;
    throw error;
  });
  return card;
}

// Another model answers: what was said of the last one is forgotten.
export function forgetModel() {
  card = null;
  byId("served").replaceChildren();
}

export async function showModel() {
  if (byId("served").childElementCount) return;
  const { dataset, configuration, metrics, versions } = await modelCard();
  const sizes = [count(dataset.entities, "entity", "entities"), count(dataset.relations, "relation"), count(dataset.train, "fact")];
  byId("served").replaceChildren(made("b", {}, clean(dataset.name)), ` · ${sizes.join(" · ")}`);
  const parts = [
    table("Data", {
      dataset: clean(dataset.name), entities: dataset.entities, relations: dataset.relations, "training facts": dataset.train,
      "validation facts": dataset.valid, "test facts": dataset.test,
      ...(dataset.facts_added ? { "facts added since": dataset.facts_added } : {}),
      ...(dataset.facts_removed ? { "facts removed since": dataset.facts_removed } : {}),
    }),
  ];
  const { realistic, coverage, queries } = metrics.summary ?? {};
  if (realistic) {
    const scores = Object.entries(METRICS).filter(([key]) => key in realistic).map(([key, words]) => [words, realistic[key]]);
    const measured = { ...Object.fromEntries(scores), "answers reached": coverage, questions: queries };
    parts.push(table("Measured on the validation facts", measured));
  }
  const { trained_with, served_with } = versions; // the pre-trained model was not trained here
  if (Object.keys(trained_with).length) parts.push(table("Trained with", trained_with));
  parts.push(table("Served with", served_with));
  const settings = Object.entries(configuration).map(([section, values]) => table(section, values));
  parts.push(made("details", {}, made("summary", {}, "Configuration"), made("div", { class: "tables" }, ...settings)));
  byId("model-card").replaceChildren(...parts);
}

function told(value) {
  if (typeof value !== "number") return Array.isArray(value) ? value.join(", ") : `${value ?? "–"}`;
  return Number.isInteger(value) ? value.toLocaleString("en") : `${+value.toPrecision(4)}`;
}

function table(title, values) {
  const rows = Object.entries(values).map(([key, value]) =>
    made("tr", {}, made("th", { scope: "row" }, key.replaceAll("_", " ")), made("td", {}, told(value))));
  return made("table", {}, made("caption", {}, title), made("tbody", {}, ...rows));
}
