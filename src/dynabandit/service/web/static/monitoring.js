// The holdout, the guardrails and the alerts on the page of one bandit; the chart of the lift is in bandit-charts.js
import { byId, clock, count, duration, h, meanReward, percent } from "./dom.js";

/** A value of a metric. */
export const metricText = (value) => String(Math.abs(value) < 1e-9 ? 0 : Number(value.toPrecision(4)));

const sign = (value) => (value < 0 ? "−" : "+");

/** A lift with its sign: in percentage points if rewards are in [0, 1], else in the unit of the rewards. */
export function liftText(value, bounded) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return `${sign(value)}${bounded ? `${(100 * size).toFixed(2)} points` : Number(size.toPrecision(3))}`;
}

/** A relative difference with its sign. */
export const relativeText = (value) => (value === null ? "–" : `${sign(value)}${percent(Math.abs(value))}`);

function verdict({ low, high }) {
  if (low === null) return "There are not enough rewards yet for an interval.";
  if (low > 0) return "The policy is clearly better than the holdout.";
  return high < 0 ? "The policy is clearly worse than the holdout." : "The difference is not clear yet.";
}

function groupRow(title, { decisions, rewards, mean }, bounded) {
  return h("tr", {}, h("th", { scope: "row" }, title), h("td", { class: "number" }, count(decisions)),
    h("td", { class: "number" }, count(rewards)), h("td", { class: "number" }, meanReward(mean, bounded)));
}

function showHoldout({ holdout, bounded, learn, reward_window }) {
  byId("holdout-section").hidden = holdout === null;
  if (holdout === null) return;
  const { share, control, lift, low, high } = holdout;
  byId("holdout-note").textContent =
    `${percent(share)} of the units ${control === null ? "get all arms in equal parts" : `always get “${control}”`}` +
    (learn === "at-once" ? "" : `; a decision counts when its reward window of ${duration(reward_window)} ends`);
  const relative = holdout.relative_lift === null ? "" : `, relative to the holdout ${relativeText(holdout.relative_lift)}` +
    (holdout.relative_low === null ? "" : ` (${relativeText(holdout.relative_low)} to ${relativeText(holdout.relative_high)})`);
  const interval = low === null ? "" : ` (${liftText(low, bounded)} to ${liftText(high, bounded)})`;
  byId("holdout-text").textContent = lift === null ? verdict(holdout) :
    `Lift: ${liftText(lift, bounded)}${interval}${relative}. ${verdict(holdout)}`;
  byId("groups").replaceChildren(groupRow("Policy", holdout.policy, bounded), groupRow("Holdout", holdout.holdout, bounded));
}

function guardrailRows({ metric, bound, direction, range, arms }) {
  const limit = `${direction === "max" ? "at most" : "at least"} ${bound}`;
  const rule = h("th", { scope: "rowgroup", rowspan: Math.max(1, arms.length) }, metric, " ",
    h("span", { class: "soft small" }, limit, range && `, ${range[0]} to ${range[1]} possible`));
  const rows = arms.map(({ arm, count: values, mean, evidence, violated, problem }) => [
    h("td", {}, arm, " ", violated && h("span", { class: "badge warm" }, "violated"),
      problem && h("div", { class: "soft small" }, problem)),
    h("td", { class: "number" }, count(values)), h("td", { class: "number" }, metricText(mean)),
    h("td", { class: "number roomy" }, percent(evidence, 0))]);
  if (rows.length === 0) rows.push([h("td", { class: "soft", colspan: 4 }, "no values yet")]);
  return rows.map((cells, place) => h("tr", {}, place === 0 && rule, cells));
}

function alertItem({ wall, message }) {
  return h("li", {}, h("span", { class: "when" }, clock(wall)), h("span", {}, message));
}

let shown = "";

/** Show the holdout, the guardrails and the alerts. */
export function showMonitoring(data) {
  const content = JSON.stringify([data.holdout, data.guardrails, data.alerts]);
  if (content === shown) return;
  shown = content;
  showHoldout(data);
  byId("guardrails-section").hidden = data.guardrails.length === 0 && data.alerts.length === 0;
  byId("guardrails-table").hidden = data.guardrails.length === 0;
  byId("guardrails").replaceChildren(...data.guardrails.flatMap(guardrailRows));
  byId("alerts").replaceChildren(...data.alerts.map(alertItem));
  byId("alerts-empty").hidden = data.alerts.length > 0;
}
