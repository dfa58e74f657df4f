// The page of one bandit: summary, tables and the stream of live data; the charts are in bandit-charts.js
import { askLimits, askRetire, enableActions, setUpActions } from "./actions.js";
import { call, follow, url } from "./api.js";
import { showCharts, timeOfStep } from "./bandit-charts.js";
import { OTHERS } from "./charts.js";
import { controlArm, onControlChange, showComparison } from "./comparison.js";
import { showConnection } from "./connection.js";
import { decisionText, showFeatures } from "./contexts.js";
import { followDeciders } from "./deciders.js";
import { byId, clock, count, decimal, duration, formatLimits, h, meanReward, percent, saveCsv, unlessPressed } from "./dom.js";
import { colourDot, describe, showTimeline } from "./interventions.js";
import { liftText, metricText, showMonitoring } from "./monitoring.js";
import { showShadow } from "./shadow.js";

const name = decodeURIComponent(byId("bandit").dataset.name); // encoded, since HTML turns a carriage return into a newline
const MANY_UNREAD = 2000; // events, from which the page says that the log is still being read
const SHOWN_EVENTS = 12;
let data = null;
let admin = false;

/** Set the text of an element, and hide it when the text is empty. */
function setText(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

const lastDecisions = () => `last ${count(data.recent_decisions)} decisions`;

function tile(value, text) {
  return h("li", { class: "tile" }, h("b", {}, value), h("span", {}, text));
}

/** Whether the total reward is clearly above (1) or below (-1) that of choosing at random, or neither (0). */
function comparison() {
  const [low, , high] = data.uniform;
  if (low === null) return 0; // rewards without bounds have no interval
  return data.total > high ? 1 : data.total < low ? -1 : 0;
}

function showTiles() {
  const gain = data.total - data.uniform[1];
  const relation = { 1: "more than choosing at random", 0: "compared with choosing at random", [-1]: "less than choosing at random" };
  byId("tiles").replaceChildren(
    tile(count(data.decisions), "decisions"),
    tile(meanReward(data.recent_rate, data.bounded),
      `${data.bounded ? "reward rate" : "mean reward"}, ${lastDecisions()} (all: ${meanReward(data.rate, data.bounded)})`),
    tile(`${gain >= 0 ? "+" : "−"}${count(Math.abs(Math.round(gain)))}`, `reward ${relation[comparison()]}`),
    data.holdout?.low == null ? "" : tile(liftText(data.holdout.lift, data.bounded),
      `lift over the holdout (${liftText(data.holdout.low, data.bounded)} to ${liftText(data.holdout.high, data.bounded)})`),
    tile(count(data.pending), "without a reward so far"),
    data.settling_age === null ? "" : tile(count(data.held), `decisions held, learned after ${duration(data.settling_age)}`),
    data.sticky_for === null ? "" : tile(count(data.units),
      `units keep their arm for ${duration(data.sticky_for)} (${count(data.for_units)} decisions for units)`),
    tile(count(data.expired), data.reward_window === null ? "expired (no reward window)" : "expired without a reward"));
}

function showSummary() {
  const leader = data.arms.reduce((best, arm) => ((arm.recent_share ?? 0) > (best?.recent_share ?? 0) ? arm : best), null);
  const verdict = {
    1: "The total reward is clearly higher than that of choosing at random.",
    0: "The total reward does not yet differ clearly from that of choosing at random.",
    [-1]: "The total reward is clearly lower than that of choosing at random.",
  };
  setText("summary", leader
    ? `“${leader.arm}” has ${percent(leader.recent_share)} of the ${lastDecisions()}. ` +
      (data.rate === null ? "No reward has been learned yet." : verdict[comparison()])
    : `No decisions yet. Request one with POST ${url("v1", "bandits", name, "decisions")}; “Code” shows how.`);
  const change = data.recent_change;
  setText("recent-change", change ? `Change detected: the mean reward of “${change.arm}” went from ${percent(change.before)} to ` +
    `${percent(change.after)} at about decision ${count(change.since)}.` : "");
  const behind = data.last_sequence - data.sequence > MANY_UNREAD;
  setText("reading", behind ? `Reading the log: ${percent(data.sequence / data.last_sequence, 0)} of ${count(data.last_sequence)} events.` : "");
  setText("policy", data.policy);
  byId("policy").title = Object.entries(data.parameters).map(([key, value]) => `${key} = ${value}`).join(", ");
}

/** A policy with features has no estimate for an arm without a context; then the observed means are shown. */
function showTitles() {
  setText("mean-title", data.contextual ? "Observed mean rewards" : "Estimated mean rewards");
  setText("mean-note", data.contextual ? "in all contexts, with 95 % intervals" : "with 95 % intervals");
}

function showLegend() {
  const state = ({ retired, paused }) => (retired ? " (retired)" : paused ? " (paused)" : "");
  const items = data.lines.map((one) =>
    h("li", {}, colourDot(one.column), one.arm, state(one) && h("span", { class: "soft" }, state(one))));
  if (data.others) items.push(h("li", {}, colourDot(OTHERS), `${count(data.others.arms)} other arms`));
  byId("legend").replaceChildren(...items);
}

// The table of arms

function armButton(action, arm, onclick, style = "small", text = action) {
  return h("button", { type: "button", class: style, "aria-label": `${action} ${arm}`, "data-arm": arm, "data-action": action, onclick }, text);
}

/** A button with this text that changes the limits of an arm; without permission only the text. */
function limitsButton(one, text, style) {
  if (!admin) return style.includes("tight") ? null : text;
  const focusAgain = () => restoreFocus({ arm: one.arm, action: "Limits" }); // the table may have been built again
  return armButton("Limits", one.arm, () => askLimits(one, focusAgain), style, text);
}

async function changeArm(arm, body) {
  byId("arms-problem").textContent = "";
  try {
    await call("PATCH", url("v1", "bandits", name, "arms", arm), body);
  } catch (error) {
    byId("arms-problem").textContent = error.message;
  }
}

function armRow(one) {
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * (one.recent_share ?? 0)}%`;
  const limits = formatLimits(one.min_share, one.max_share);
  return h("tr", {},
    h("th", { scope: "row" }, colourDot(one.column), one.arm, " ", one.paused && h("span", { class: "badge warm" }, "paused"),
      limits && h("span", { class: "soft tight" }, `limits ${limits}`)),
    h("td", { class: "number" }, percent(one.recent_share), h("span", { class: "track", "aria-hidden": "true" }, bar)),
    h("td", { class: "number roomy" }, percent(one.propensity)), h("td", { class: "number roomy" }, limitsButton(one, limits || "–", "small quiet edit")),
    h("td", { class: "number roomy" }, count(one.plays)), h("td", { class: "number roomy" }, count(one.pending)),
    h("td", { class: "number" }, meanReward(one.mean, data.bounded)),
    h("td", { class: "number roomy" }, one.low === null ? "–" : `${meanReward(one.low, data.bounded)} to ${meanReward(one.high, data.bounded)}`),
    h("td", { class: "number roomy" }, decimal(one.forgetting, 4)),
    h("td", { class: "number roomy" }, count(one.effective_size)),
    h("td", { class: "acts" },
      admin && armButton(one.paused ? "Resume" : "Pause", one.arm, () => changeArm(one.arm, { paused: !one.paused })),
      limitsButton(one, "Limits", "small quiet tight"),
      admin && armButton("Retire", one.arm, () => askRetire(one.arm), "small quiet")));
}

function retiredRow(one) {
  const empty = (times) => Array.from({ length: times }, () => h("td", { class: "number roomy" }, "–"));
  return h("tr", { class: "soft" },
    h("th", { scope: "row" }, colourDot(one.column), one.arm, " ", h("span", { class: "badge" }, "retired")),
    h("td", { class: "number" }, "–"), empty(2), h("td", { class: "number roomy" }, count(one.plays)), empty(1),
    h("td", { class: "number" }, meanReward(one.mean, data.bounded)), empty(3), h("td", {}));
}

let shownArms = "";

function showArms() {
  const content = JSON.stringify([admin, data.arms, data.retired]);
  if (content === shownArms) return;
  shownArms = content;
  const focused = document.activeElement?.dataset;
  byId("arms").replaceChildren(...data.arms.map(armRow));
  byId("retired").replaceChildren(...data.retired.map(retiredRow));
  if (focused?.action) restoreFocus(focused);
  const partial = data.arm_count > data.arms.length ? `the ${count(data.arms.length)} most played of ${count(data.arm_count)}; ` : "";
  byId("arms-note").textContent = `${partial}shares of the ${lastDecisions()}`;
}

/** Focus the button that had the focus before the table was built again; Pause and Resume are the same button. */
function restoreFocus({ arm, action }) {
  const kind = (one) => (one === "Resume" ? "Pause" : one);
  [...byId("arms").querySelectorAll("[data-action]")]
    .find(({ dataset, offsetParent }) => offsetParent && dataset.arm === arm && kind(dataset.action) === kind(action))?.focus();
}

const ARM_FIELDS = ["arm", "recent_share", "propensity", "best", "min_share", "max_share", "plays", "pending", "mean", "low", "high",
  "forgetting", "effective_size", "paused"];
const UPLIFT_FIELDS = ["uplift", "uplift_low", "uplift_high", "relative_uplift", "relative_uplift_low", "relative_uplift_high"];

byId("arms-csv").onclick = () => {
  const uplifts = data.uplift === null ? [] : UPLIFT_FIELDS;
  const uplift = (place) => (uplifts.length ? [...(data.uplift[place]?.absolute ?? [null, null, null]), ...(data.uplift[place]?.relative ?? [])] : []);
  const rows = data.arms.map((one, place) => [...ARM_FIELDS.map((field) => one[field]), ...uplift(place)]);
  saveCsv([[...ARM_FIELDS, ...uplifts], ...rows], `${name}, arms.csv`);
};

// The latest events

const EVENT_TEXTS = { create: "created", decision: "decision", reward: "reward", close: "reward window ended",
  learn: "held decisions learned", activate: "activated", guardrails: "guardrails changed", alert: "alert", delete: "deleted" };

/** The text of an event that changed an arm or the policy. */
function changeText({ add, paused, min_share, max_share, ...rest }) {
  return [describe({ ...rest, added: add, paused, resumed: paused === false }),
    min_share !== undefined && `limited to at least ${percent(min_share)}`,
    max_share !== undefined && `limited to at most ${percent(max_share)}`].filter(Boolean).join(", ");
}

function eventText({ kind, metric, value, change }) {
  if (kind === "metric") return `${metric}: ${metricText(value)}`;
  if (kind === "shadow") return describe({ shadow: change.policy ?? null });
  return EVENT_TEXTS[kind] ?? changeText(change);
}

function eventRow(one) {
  return h("tr", {},
    h("td", { class: "number roomy" }, count(one.sequence)), h("td", { class: "time" }, clock(one.wall)),
    h("td", {}, eventText(one), " ", h("span", { class: "soft small" }, decisionText(one))),
    h("td", {}, one.arm ?? one.change?.arm ?? ""),
    h("td", { class: "number" }, one.reward === undefined ? "" : String(one.reward)));
}

function show(newData) {
  if (newData === null) {
    setText("missing", "This bandit was deleted.");
    return;
  }
  if (data === null) followDeciders(name);
  data = newData;
  enableActions(data);
  showTiles();
  showSummary();
  showLegend();
  showTitles();
  showCharts(data);
  showTimeline(data, timeOfStep);
  showMonitoring(data);
  showShadow(data);
  showArms();
  showComparison(data);
  showFeatures(data);
  byId("events").replaceChildren(...data.events.slice(0, SHOWN_EVENTS).map(eventRow));
}

function showState(state) {
  showConnection(state);
  const isUnknown = state.status === 404; // without keys, the service answers with another page at once
  byId("unknown").hidden = !isUnknown;
  byId("bandit").hidden = isUnknown;
}

let following = new AbortController();

/** Follow the data of the page, from now on with the selected control arm. */
function followData() {
  following.abort();
  following = new AbortController();
  const query = new URLSearchParams(controlArm() === null ? { name } : { name, control: controlArm() });
  follow(`/pages/bandit?${query}`, (event, newData) => unlessPressed(() => show(newData)), showState, following.signal);
}

followData();
onControlChange(() => {
  followData();
  showComparison(data);
});
document.documentElement.addEventListener("theme", () => {
  shownArms = "";
  if (data) show(data);
});
setUpActions(name, () => data).then((isAdmin) => {
  admin = isAdmin;
  if (data) showArms();
}).catch(() => {});
