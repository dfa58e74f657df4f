// The charts on the page of one bandit
import { band, Chart, layer, layout, line, marks, OTHERS, plotly, seriesStyle } from "./charts.js";
import { byId, clock, count, decimal, meanReward, percent } from "./dom.js";
import { interventionMarks } from "./interventions.js";
import { liftText } from "./monitoring.js";
import { isZoomed, onZoom, periodOf, shownRange, wholeData, zoomByDragging } from "./zoom.js";

const TABLE_ROWS = 40;
const DRAW_MS = 900; // between two updates of the charts
const MARGIN = { l: 48, r: 16, t: 12, b: 40 };
const EMPTY_AXIS = { range: [0, 1], showticklabels: false, showgrid: false };
const IS_TOUCHED = matchMedia("(pointer: coarse)").matches;
const BASELINE_COLOUR = "#7d939b";

plotly(); // large: load it while the data is on its way
let data = null; // of the selected period
let byTime = false; // the horizontal axis: time or decisions

/** A time as Plotly takes it: local, without a time zone. */
function plotlyTime(seconds) {
  const date = new Date(seconds * 1000);
  return new Date(date.getTime() - 60_000 * date.getTimezoneOffset()).toISOString().slice(0, -1);
}

const positions = () => (byTime ? data.series.wall : data.series.step);
const toAxis = (value) => (byTime ? plotlyTime(value) : value);
const xValues = () => positions().map(toAxis);

/** The time of a decision: that of the chart point that contains it. */
export const timeOfStep = (step) => wholeData().series.wall.at(wholeData().series.step.findIndex((last) => last >= step)) ?? wholeData().wall;
const xOfStep = (step) => toAxis(byTime ? timeOfStep(step) : step);

/** The ends of the horizontal axis. */
const ends = () => shownRange(byTime) ?? [positions()[0], positions().at(-1)];

/** The position of an intervention; one before the first or after the last point is moved to the edge. */
const clampedPosition = ({ step, wall }) => Math.min(Math.max(byTime ? wall : step, ends()[0]), ends()[1]);
const axis = {
  toX: (one) => toAxis(clampedPosition(one)),
  toFraction: (one) => (clampedPosition(one) - ends()[0]) / Math.max(ends()[1] - ends()[0], 1e-9),
};

/** The layout of the chart in an element, with marks for the interventions. */
function chartLayout(id, { yaxis, shapes = [], over = false, ...more }) {
  const common = { x: byTime ? "time" : "decisions", legend: false, margin: MARGIN, ...more };
  if (data.decisions === 0) return layout({ ...common, xaxis: EMPTY_AXIS, yaxis: { ...EMPTY_AXIS, ...yaxis } });
  const range = shownRange(byTime)?.map(toAxis);
  common.xaxis = { fixedrange: IS_TOUCHED, ...(range && { range }) };
  common.dragmode = IS_TOUCHED ? false : "zoom"; // on a touch screen, dragging scrolls the page
  const found = interventionMarks(byId(id), MARGIN, data.interventions, axis, over);
  return layout({ ...common, yaxis, ...found, shapes: [...found.shapes, ...shapes] });
}

/**
 * The table behind a chart. `columns` are triples: a title, a function from the index of a point to a cell, and the values
 * in a file, by what is added to the title there.
 */
function chartTable(caption, columns) {
  const { step, wall } = data.series;
  const stride = Math.ceil(step.length / TABLE_ROWS);
  const indices = step.map((_, i) => i).filter((i) => (step.length - 1 - i) % stride === 0);
  return {
    caption,
    head: ["decision", "time", ...columns.map(([title]) => title)],
    rows: indices.map((i) => [count(step[i]), clock(wall[i]), ...columns.map(([, cell]) => cell(i))]),
    csv: () => {
      const found = columns.flatMap(([title, , values]) => Object.entries(values).map(([part, numbers]) => [title + part, numbers]));
      const rows = step.map((last, i) => [last, new Date(1000 * wall[i]).toISOString(), ...found.map(([, numbers]) => numbers[i])]);
      return { rows: [["decision", "time", ...found.map(([title]) => title)], ...rows], name: `${data.name}, ${caption.split(/[,.]/)[0]}.csv` };
    },
  };
}

const note = () => (data.decisions === 0 ? "No decisions yet" : "");

function shareChart() {
  const { lines, others } = data;
  const layers = lines.map((one) => layer(one.arm, xValues(), one.share, one.column));
  if (others) layers.push(layer(`${count(others.arms)} other arms`, xValues(), others.share, OTHERS));
  return {
    data: layers,
    note: note(),
    layout: chartLayout("share", { percent: true, yaxis: { range: [0, 1] }, over: true }),
    table: chartTable("Share of the decisions", lines.map((one) => [one.arm, (i) => percent(one.share[i]), { "": one.share }])),
  };
}

function meanChart() {
  const { lines, bounded } = data;
  const x = xValues();
  const bands = lines.flatMap((one) => band(one.arm, x, one.low, one.high, one.column));
  const curves = lines.map((one) => line(one.arm, x, one.mean, one.column, { form: bounded ? ".1%" : ".4~g", width: 1.7 }));
  // The first estimates vary most and would make the axis too long
  const later = (values) => values.slice(Math.floor(values.length / 20));
  const high = 1.3 * Math.max(0.05, ...lines.flatMap((one) => later(one.mean)));
  return {
    data: [...bands, ...curves],
    note: note(),
    layout: chartLayout("mean", bounded ? { percent: true, yaxis: { range: [0, Math.min(1, high)] } } : {}),
    table: chartTable("Estimated mean reward, with its 95 % interval", lines.map((one) =>
      [one.arm, (i) => {
        const [mean, low, high] = [one.mean, one.low, one.high].map((values) => meanReward(values[i], bounded));
        return `${mean} (${low} to ${high})`;
      }, { "": one.mean, " low": one.low, " high": one.high }])),
  };
}

/** A vertical line at each detected change. */
const changeLines = () => data.changes.map(({ step, column }) => ({
  type: "line", x0: xOfStep(step), x1: xOfStep(step), yref: "paper", y0: 0, y1: 1, layer: "below",
  line: { color: seriesStyle(column).colour, width: 1.3, dash: "dash" },
}));

function changeMarks(one) {
  const changes = data.changes.filter((change) => change.column === one.column);
  if (changes.length === 0) return [];
  const { step: steps } = data.series;
  const heights = changes.map(({ step }) => one.forgetting[Math.max(0, steps.findIndex((last) => last >= step))] ?? 1);
  const texts = changes.map(({ before, after, since }) =>
    `${one.arm}: ${percent(before)} → ${percent(after)}, since decision ${count(since)}`);
  return [marks(one.arm, changes.map(({ step }) => xOfStep(step)), heights, one.column, texts, { size: 15 })];
}

function forgettingChart() {
  const { lines, changes } = data;
  const curves = lines.map((one) => line(one.arm, xValues(), one.forgetting, one.column, { form: ".4f", width: 1.7 }));
  const listed = changes.map(({ arm, step, before, after }) =>
    `${arm} changed from ${percent(before)} to ${percent(after)}, detected at decision ${count(step)}`);
  return {
    data: [...curves, ...lines.flatMap(changeMarks)],
    note: note(),
    layout: chartLayout("forgetting", { yaxis: { tickformat: ".3~f" }, shapes: changeLines() }),
    table: chartTable(`Forgetting factors. Detected changes: ${listed.length ? listed.join("; ") : "none"}.`,
      lines.map((one) => [one.arm, (i) => decimal(one.forgetting[i], 4), { "": one.forgetting }])),
  };
}

function rewardChart() {
  const { low, middle, high, total } = data.series;
  const x = xValues();
  // Totals rise, so the upper left has room for the legend
  const legend = data.decisions > 0 && { x: 0.01, y: 0.99, yanchor: "top", orientation: "v" };
  return {
    data: [
      ...band("at random, 95 %", x, low, high, OTHERS, { opacity: 0.25, colour: BASELINE_COLOUR }),
      line("at random (estimated)", x, middle, OTHERS, { form: ",.0f", dash: "dash", colour: BASELINE_COLOUR }),
      line("this bandit", x, total, 0, { form: ",.0f", width: 2.5 }),
    ],
    note: note(),
    layout: chartLayout("reward", { legend, yaxis: { rangemode: isZoomed() ? "normal" : "tozero" } }),
    table: chartTable("Total reward", [
      ["this bandit", (i) => decimal(total[i], 0), { "": total }],
      ["at random", (i) => `${decimal(middle[i], 0)} (${decimal(low[i], 0)} to ${decimal(high[i], 0)})`,
        { "": middle, " low": low, " high": high }],
    ]),
  };
}

function liftChart() {
  const [lift, low, high] = data.series.lift;
  const x = xValues();
  const { bounded } = data;
  // The first intervals are the widest and would make the axis too long
  const later = [...low, ...high].filter((value, i) => value !== null && i % low.length >= low.length / 10);
  const [least, most] = [Math.min(0, ...later), Math.max(0, ...later)];
  const room = 0.05 * Math.max(most - least, 1e-9);
  return {
    data: [...band("95 % at all times", x, low, high, 0), line("lift", x, lift, 0, { form: bounded ? "+.2%" : "+.4~g", width: 2.2 })],
    note: lift.every((value) => value === null) ? "No rewards of both groups yet" : "",
    layout: chartLayout("lift", {
      yaxis: { range: [least - room, most + room], zeroline: true, zerolinecolor: BASELINE_COLOUR, zerolinewidth: 1.5,
        ...(bounded ? { tickformat: "+.2~%" } : {}) },
    }),
    table: chartTable("Lift over the holdout, with an interval that holds at all times", [
      ["lift", (i) => liftText(lift[i], bounded), { "": lift }],
      ["interval", (i) => (low[i] === null ? "–" : `${liftText(low[i], bounded)} to ${liftText(high[i], bounded)}`),
        { " low": low, " high": high }],
    ]),
  };
}

let lift = null; // the chart, if there is a holdout
const charts = [
  new Chart(byId("share"), shareChart), new Chart(byId("mean"), meanChart),
  new Chart(byId("forgetting"), forgettingChart), new Chart(byId("reward"), rewardChart),
];

let timer = 0;
let drawnAt = -DRAW_MS;

/** Draw all charts; `data-drawn` of the page is then the number of the latest event that they show. */
async function draw() {
  data = periodOf(received);
  const { sequence } = data;
  const drawn = data.holdout ? [...charts, (lift ??= new Chart(byId("lift"), liftChart))] : charts;
  await Promise.all(drawn.map((chart) => chart.draw().then(() => zoomByDragging(chart.canvas, () => byTime))));
  byId("bandit").dataset.drawn = sequence;
}

/** Draw all charts soon: at most once per DRAW_MS, and not while the page is hidden. */
function drawSoon() {
  if (timer || received === null || document.hidden) return;
  timer = setTimeout(() => {
    timer = 0;
    drawnAt = performance.now();
    draw();
  }, Math.max(0, drawnAt + DRAW_MS - performance.now()));
}

let received = null; // the latest data

/** Show new data. */
export function showCharts(newData) {
  received = newData;
  data = periodOf(newData);
  drawSoon();
}

byId("axis").addEventListener("change", () => {
  byTime = byId("axis").querySelector(":checked").value === "time";
  drawSoon();
});
onZoom(drawSoon);
document.addEventListener("visibilitychange", drawSoon);
addEventListener("resize", drawSoon);
