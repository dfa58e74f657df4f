// One bandit: what it does, what it believes, what it has earned
import { askRetire, prepareActions } from "./actions.js";
import { at, call, follow } from "./api.js";
import { band, Chart, layer, layout, line, look, marks, plotly } from "./charts.js";
import { showConnection } from "./connection.js";
import { byId, clock, count, decimal, h, limits, percent } from "./dom.js";
import { deed, dot, marked, showMoves } from "./moves.js";

const name = decodeURIComponent(byId("bandit").dataset.name); // HTML would turn a carriage return into a new line
const EARNED = 0; // places in the palette
const DRAW_MS = 900;
plotly(); // it is large: ask for it while the numbers are on their way
let view = null;
let admin = false;

// Charts

const every = (values, most = 40) => {
  const stride = Math.ceil(values.length / most);
  return values.map((_, i) => i).filter((i) => (values.length - 1 - i) % stride === 0);
};

function table(caption, columns) {
  const steps = view.series.step;
  return {
    caption,
    head: ["decision", "time", ...columns.map(([head]) => head)],
    rows: every(steps).map((i) => [count(steps[i]), clock(view.series.wall[i]), ...columns.map(([, cell]) => cell(i))]),
  };
}

const OTHERS = 8; // their place in the palette: grey
let byClock = false;

/** A time as Plotly takes it: local, without a zone. */
function moment(seconds) {
  const date = new Date(seconds * 1000);
  return new Date(date.getTime() - 60_000 * date.getTimezoneOffset()).toISOString().slice(0, -1);
}

const ends = () => (byClock ? view.series.wall : view.series.step);
const onAxis = (value) => (byClock ? moment(value) : value);

/** Where the points are on the axis; a step in between is at the end of its point. */
const places = () => ends().map(onAxis);
const wallAt = (step) => view.series.wall.at(view.series.step.findIndex((end) => end >= step)) ?? view.wall;
const placeOf = (step) => onAxis(byClock ? wallAt(step) : step);

/** Where an intervention is; one from before the first decision or after the last one is at the edge. */
const within = ({ step, wall }) => Math.min(Math.max(byClock ? wall : step, ends()[0]), ends().at(-1));
const axis = {
  spot: (one) => onAxis(within(one)),
  shareOf: (one) => (within(one) - ends()[0]) / Math.max(ends().at(-1) - ends()[0], 1e-9),
};
const MARGIN = { l: 48, r: 16, t: 12, b: 40 };
const EMPTY = { range: [0, 1], showticklabels: false, showgrid: false }; // an axis on which nothing is known yet

/** The layout of the chart in an element, with the marks of what people did. */
function frame(id, { yaxis, shapes = [], over = false, ...more }) {
  const common = { x: byClock ? "time" : "decisions", legend: false, margin: MARGIN, ...more };
  if (view.decisions === 0) return layout({ ...common, xaxis: EMPTY, yaxis: { ...EMPTY, ...yaxis } });
  const found = marked(byId(id), MARGIN, view.interventions, axis, over);
  return layout({ ...common, yaxis, ...found, shapes: [...found.shapes, ...shapes] });
}

const changed = () => view.changes.map(({ step, column }) => ({
  type: "line", x0: placeOf(step), x1: placeOf(step), yref: "paper", y0: 0, y1: 1, layer: "below",
  line: { color: look(column).colour, width: 1.3, dash: "dash" },
}));
const note = () => (view.decisions === 0 ? "No decision yet" : "");

function sharePart() {
  const { lines, others } = view;
  const layers = lines.map((one) => layer(one.arm, places(), one.share, one.column));
  if (others) layers.push(layer(`${count(others.arms)} other arms`, places(), others.share, OTHERS));
  return {
    data: layers,
    note: note(),
    layout: frame("share", { percent: true, yaxis: { range: [0, 1] }, over: true }),
    table: table("Share of the decisions", lines.map((one) => [one.arm, (i) => percent(one.share[i])])),
  };
}

function meanPart() {
  const { lines } = view;
  const x = places();
  const bands = lines.flatMap((one) => band(one.arm, x, one.low, one.high, one.column));
  const curves = lines.map((one) => line(one.arm, x, one.mean, one.column, { form: ".1%", width: 1.7 }));
  const later = (values) => values.slice(Math.floor(values.length / 20));
  const high = 1.3 * Math.max(0.05, ...lines.flatMap((one) => later(one.mean)));
  return {
    data: [...bands, ...curves],
    note: note(),
    layout: frame("mean", { percent: true, yaxis: { range: [0, Math.min(1, high)] } }),
    table: table("Estimated mean reward, with its 95 % band", lines.map((one) =>
      [one.arm, (i) => `${percent(one.mean[i])} (${percent(one.low[i])} to ${percent(one.high[i])})`])),
  };
}

function forgettingPart() {
  const { series, lines, changes } = view;
  const curves = lines.map((one) => line(one.arm, places(), one.forgetting, one.column, { form: ".4f", width: 1.7 }));
  const found = lines.flatMap((one) => {
    const own = changes.filter((change) => change.column === one.column);
    if (own.length === 0) return [];
    const heights = own.map(({ step }) => one.forgetting[Math.max(0, series.step.findIndex((end) => end >= step))] ?? 1);
    const words = own.map(({ before, after, since }) =>
      `${one.arm}: ${percent(before)} → ${percent(after)}, since decision ${count(since)}`);
    return [marks(one.arm, own.map(({ step }) => placeOf(step)), heights, one.column, words, { size: 15 })];
  });
  const told = changes.map(({ arm, step, before, after }) =>
    `${arm} changed from ${percent(before)} to ${percent(after)}, noticed at decision ${count(step)}`);
  return {
    data: [...curves, ...found],
    note: note(),
    layout: frame("forgetting", { yaxis: { tickformat: ".3~f" }, shapes: changed() }),
    table: table(`Forgetting factor. Detected changes: ${told.length ? told.join("; ") : "none"}.`,
      lines.map((one) => [one.arm, (i) => decimal(one.forgetting[i], 4)])),
  };
}

function rewardPart() {
  const { series } = view;
  const grey = "#7d939b";
  return {
    data: [
      ...band("at random, 95 %", places(), series.low, series.high, 8, { opacity: 0.25, colour: grey }),
      line("at random (estimated)", places(), series.middle, 8, { form: ",.0f", dash: "dash", colour: grey }),
      line("earned", places(), series.total, EARNED, { form: ",.0f", width: 2.5 }),
    ],
    note: note(),
    // Totals rise, so that there is room at the upper left
    layout: frame("reward", { legend: view.decisions > 0 && { x: 0.01, y: 0.99, yanchor: "top", orientation: "v" }, yaxis: { rangemode: "tozero" } }),
    table: table("Total reward", [
      ["earned", (i) => decimal(series.total[i], 0)],
      ["at random", (i) => `${decimal(series.middle[i], 0)} (${decimal(series.low[i], 0)} to ${decimal(series.high[i], 0)})`],
    ]),
  };
}

const charts = [
  new Chart(byId("share"), sharePart), new Chart(byId("mean"), meanPart),
  new Chart(byId("forgetting"), forgettingPart), new Chart(byId("reward"), rewardPart),
];

// Words and numbers

function setText(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === "";
}

function tile(value, words) {
  return h("li", { class: "tile" }, h("b", {}, value), h("span", {}, words));
}

function showTiles() {
  const [low, middle] = view.uniform;
  const gain = view.total - middle;
  const sure = view.total > view.uniform[2] ? "more than choosing at random" : view.total < low ? "less than choosing at random" : "against choosing at random";
  byId("tiles").replaceChildren(
    tile(count(view.decisions), "decisions"),
    tile(percent(view.recent_rate), `reward rate lately, ${percent(view.rate)} in all`),
    tile(`${gain >= 0 ? "+" : "−"}${count(Math.abs(Math.round(gain)))}`, `reward ${sure}`),
    tile(count(view.pending), "rewards pending"),
    tile(count(view.expired), view.reward_window === null ? "expired: no window is set" : "expired without a reward"));
}

function showWords() {
  const leader = view.arms.reduce((best, arm) => ((arm.recent_share ?? 0) > (best?.recent_share ?? 0) ? arm : best), null);
  let words = `No decision yet. Ask for one with POST ${at("v1", "bandits", name, "decisions")}.`;
  if (leader) {
    const [low, , high] = view.uniform;
    words = `“${leader.arm}” leads with ${percent(leader.recent_share)} of the latest decisions.`;
    if (view.total > high) words += " It is learning: it has earned clearly more than choosing at random would have.";
    else if (view.total < low) words += " It has earned less than choosing at random would have.";
    else words += " Whether it does better than choosing at random cannot be told yet.";
  }
  setText("words", words);
  const last = view.changes.at(-1);
  const news = last && view.decisions - last.step <= 1000;
  setText("changed", news ? `The world has changed: “${last.arm}” went from ${percent(last.before)} to ${percent(last.after)}, ` +
    `at about decision ${count(last.since)}.` : "");
  const behind = view.latest - view.sequence > 2000;
  setText("reading", behind ? `Reading the log: ${percent(view.sequence / view.latest, 0)} of ${count(view.latest)} events.` : "");
  const parameters = Object.entries(view.parameters).map(([key, value]) => `${key} = ${value}`).join(", ");
  setText("policy", view.policy);
  byId("policy").title = parameters;
}

function act(words, arm, run, style = "small") {
  return h("button", { type: "button", class: style, "aria-label": `${words} ${arm}`, "data-act": `${words} ${arm}`, onclick: run }, words);
}

async function change(arm, body) {
  byId("arms-problem").textContent = "";
  try {
    await call("PATCH", at("v1", "bandits", name, "arms", arm), body);
  } catch (error) {
    byId("arms-problem").textContent = error.message;
  }
}

function armRow(one) {
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * (one.recent_share ?? 0)}%`;
  const held = limits(one.min_share, one.max_share);
  return h("tr", { "data-arm": one.arm },
    h("th", { scope: "row" }, dot(one.column), one.arm, " ", one.paused && h("span", { class: "badge warm" }, "paused"),
      held && h("span", { class: "soft tight" }, `limits ${held}`)),
    h("td", { class: "number" }, percent(one.recent_share), h("span", { class: "track", "aria-hidden": "true" }, bar)),
    h("td", { class: "number roomy" }, held || "–"),
    h("td", { class: "number roomy" }, count(one.plays)),
    h("td", { class: "number" }, percent(one.mean)),
    h("td", { class: "number roomy" }, one.mean === null ? "–" : `${percent(one.low)} to ${percent(one.high)}`),
    h("td", { class: "number roomy" }, decimal(one.forgetting, 4)),
    h("td", { class: "number roomy" }, count(one.effective_size)),
    h("td", { class: "acts" },
      admin && act(one.paused ? "Resume" : "Pause", one.arm, () => change(one.arm, { paused: !one.paused })),
      admin && act("Retire", one.arm, () => askRetire(one.arm), "small quiet")));
}

/** An arm that was retired: nothing about it can change any more. */
function retiredRow(one) {
  const nothing = (times) => Array.from({ length: times }, () => h("td", { class: "number roomy" }, "–"));
  return h("tr", { class: "soft" },
    h("th", { scope: "row" }, dot(one.column), one.arm, " ", h("span", { class: "badge" }, "retired")),
    h("td", { class: "number" }, "–"), nothing(1), h("td", { class: "number roomy" }, count(one.plays)),
    h("td", { class: "number" }, percent(one.mean)), nothing(3), h("td", {}));
}

function showLegend() {
  const state = ({ retired, paused }) => (retired ? " (retired)" : paused ? " (paused)" : "");
  const items = view.lines.map((one) =>
    h("li", {}, dot(one.column), one.arm, state(one) && h("span", { class: "soft" }, state(one))));
  if (view.others) items.push(h("li", {}, dot(OTHERS), `${count(view.others.arms)} other arms`));
  byId("legend").replaceChildren(...items);
}

let shownArms = "";

function showArms() {
  const text = JSON.stringify([admin, view.arms, view.retired]);
  if (text === shownArms) return;
  shownArms = text;
  const focused = document.activeElement?.dataset?.act;
  byId("arms").replaceChildren(...view.arms.map(armRow));
  byId("retired").replaceChildren(...view.retired.map(retiredRow));
  if (focused) {
    const words = focused.replace(/^(Pause|Resume) /, "");
    [...byId("arms").querySelectorAll("[data-act]")]
      .find((one) => one.dataset.act === focused || /^(Pause|Resume) /.test(one.dataset.act) && one.dataset.act.endsWith(` ${words}`))?.focus();
  }
  const more = view.arm_count - view.arms.length;
  byId("arms-note").textContent = more > 0 ? `the ${count(view.arms.length)} most played of ${count(view.arm_count)}` : "";
}

const WHAT = { create: "created", decision: "decision", reward: "reward", close: "window ended", delete: "deleted" };

/** What an event of an arm or of the policy changed; a limit that it does not name may be there all the same. */
function told({ add, paused, min_share, max_share, ...rest }) {
  return [deed({ ...rest, added: add, paused, resumed: paused === false }), min_share !== undefined && `limited to at least ${percent(min_share)}`,
    max_share !== undefined && `limited to at most ${percent(max_share)}`].filter(Boolean).join(", ");
}

function eventRow(one) {
  const what = WHAT[one.kind] ?? told(one.change);
  return h("tr", {},
    h("td", { class: "number roomy" }, count(one.sequence)), h("td", { class: "time" }, clock(one.wall)), h("td", {}, what),
    h("td", {}, one.arm ?? one.change?.arm ?? ""),
    h("td", { class: "number" }, one.reward === undefined ? "" : String(one.reward)));
}

function show(now) {
  if (now === null) {
    setText("gone", "This bandit is not there any more.");
    return;
  }
  view = now;
  document.body.dataset.sequence = String(view.sequence);
  showTiles();
  showWords();
  showLegend();
  showMoves(view, wallAt);
  showArms();
  byId("events").replaceChildren(...view.events.slice(0, 12).map(eventRow));
  drawSoon();
}

let waiting = 0;
let drawnAt = -DRAW_MS;

/** Draw the charts, but not more often than people can look, and not while nobody does. */
function drawSoon() {
  if (waiting || document.hidden) return;
  waiting = setTimeout(() => {
    waiting = 0;
    drawnAt = performance.now();
    for (const chart of charts) chart.draw();
  }, Math.max(0, drawnAt + DRAW_MS - performance.now()));
}

byId("axis").addEventListener("change", () => {
  byClock = byId("axis").querySelector(":checked").value === "clock";
  if (view) drawSoon();
});
document.addEventListener("visibilitychange", () => view && drawSoon());
addEventListener("resize", () => view && drawSoon());

follow(() => `/pages/bandit?name=${encodeURIComponent(name)}`, (event, now) => show(now), (state) => {
  showConnection(state);
  if (state.status === 404) setText("gone", "There is no bandit with this name.");
});
document.documentElement.addEventListener("theme", () => {
  shownArms = "";
  if (view) show(view);
});
prepareActions(name, () => view).then((may) => {
  admin = may;
  if (view) showArms();
}).catch(() => {});
