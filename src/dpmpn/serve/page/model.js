// The model card: what answers here, how it was trained and how well it did.
import { get } from "./api.js";
import { byId, clean, count, made } from "./words.js";

const METRICS = { mrr: "MRR", hits_at_1: "Hits@1", hits_at_3: "Hits@3", hits_at_10: "Hits@10", mean_rank: "mean rank", average_precision: "average precision" };

let card = null;

// Kept: it does not change while a server runs.
export const modelCard = async (signal) => (card ??= await get("/api/v1/model", {}, signal));

export async function showModel() {
  const { dataset, configuration, metrics, versions } = await modelCard();
  byId("served").replaceChildren(
    made("b", {}, clean(dataset.name)),
    ` · ${count(dataset.entities, "entity", "entities")} · ${count(dataset.relations, "relation")} · ${count(dataset.train, "fact")}`,
  );
  const parts = [
    table("Data", {
      dataset: clean(dataset.name), entities: dataset.entities, relations: dataset.relations, "facts to train on": dataset.train,
      "facts to validate with": dataset.valid, "facts to test with": dataset.test,
      ...(dataset.facts_added ? { "facts added since": dataset.facts_added } : {}),
      ...(dataset.facts_removed ? { "facts removed since": dataset.facts_removed } : {}),
    }),
  ];
  const measured = Object.entries(flat(metrics)).filter(([, value]) => typeof value === "number");
  if (measured.length) parts.push(table("Measured on the validation facts", Object.fromEntries(measured.map(([key, value]) => [METRICS[key] ?? key.replaceAll("_", " "), value]))));
  parts.push(table("Trained with", versions.trained_with), table("Served with", versions.served_with));
  for (const [section, settings] of Object.entries(configuration)) parts.push(table(`Configuration: ${section}`, settings));
  byId("model-card").replaceChildren(...parts);
}

const flat = (metrics) => Object.fromEntries(Object.entries(metrics).flatMap(([key, value]) =>
  value && typeof value === "object" ? Object.entries(flat(value)).map(([inner, each]) => [`${key} ${inner}`, each]) : [[key, value]]));

const told = (value) => (typeof value === "number" && !Number.isInteger(value) ? `${+value.toPrecision(4)}`
  : typeof value === "number" ? value.toLocaleString("en") : Array.isArray(value) ? value.join(", ") : `${value ?? "–"}`);

function table(title, values) {
  const rows = Object.entries(values).map(([key, value]) => made("tr", {}, made("th", { scope: "row" }, key.replaceAll("_", " ")), made("td", {}, told(value))));
  return made("table", {}, made("caption", {}, title), made("tbody", {}, ...rows));
}
