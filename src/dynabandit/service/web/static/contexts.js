// The features of a bandit: for each value, how often it came lately, which arms were chosen, and what they earned
import { seriesStyle } from "./charts.js";
import { byId, count, h, meanReward, percent } from "./dom.js";
import { colourDot } from "./interventions.js";

const KINDS = { number: "number", boolean: "yes or no", category: "category", vector: "vector", hashed: "names and values" };
const SHOWN_FEATURES = 4; // of the context of one decision
const LONGEST = 24; // characters of a value

function armShares(arms) {
  return h("ul", { class: "legend" }, arms.map(({ arm, column, share }) =>
    h("li", {}, colourDot(column), `${arm} ${percent(share, 0)}`)));
}

function valueRow(feature, one, index, bounded) {
  return h("tr", {},
    index === 0 && h("th", { scope: "rowgroup", rowspan: feature.values.length }, feature.name,
      h("span", { class: "soft small kind" }, KINDS[feature.kind])),
    h("th", { scope: "row" }, one.value),
    h("td", { class: "number roomy" }, count(one.decisions)),
    h("td", {}, armShares(one.arms)),
    h("td", { class: "number" }, meanReward(one.rate, bounded)));
}

let shown = "";

/** Show the features of a bandit, or nothing if it has none. */
export function showFeatures({ features, bounded }) {
  byId("features-section").hidden = features.length === 0;
  const content = JSON.stringify([features, bounded, seriesStyle(0).colour]);
  if (content === shown) return;
  shown = content;
  const listed = features.filter(({ values }) => values.length > 0);
  const others = features.filter(({ values }) => values.length === 0);
  const table = byId("features-rows");
  table.replaceChildren(table.tHead, ...listed.map((feature) =>
    h("tbody", {}, feature.values.map((one, index) => valueRow(feature, one, index, bounded)))));
  byId("features-table").hidden = listed.length === 0;
  byId("features-others").textContent = others.length === 0 ? "" :
    `${listed.length ? "Also used" : "Features"}: ${others.map(({ name, kind }) => `${name} (${KINDS[kind]})`).join(", ")}.`;
}

const shortened = (value) => {
  if (typeof value === "object") return "…"; // a vector, or names with values
  const text = typeof value === "number" ? String(Number(value.toPrecision(5))) : String(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
};

/** What was asked for a decision, as text: its ranking, its unit, whether it is in the holdout, and its context. */
export function decisionText({ unit, holdout, context, ranking }) {
  const values = Object.entries(context ?? {}).filter(([, value]) => value !== null);
  const texts = values.slice(0, SHOWN_FEATURES).map(([name, value]) => `${name} ${shortened(value)}`);
  const [, ...further] = ranking ?? [];
  return [further.length > 0 && `then ${further.map(shortened).join(", ")}`, unit && `for ${shortened(unit)}`, holdout && "holdout", ...texts, values.length > SHOWN_FEATURES && "…"]
    .filter(Boolean).join(", ");
}
