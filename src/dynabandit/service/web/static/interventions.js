// Interventions: marks on the charts and a list of what people changed, together with the detected changes
import { paint, plain, seriesStyle } from "./charts.js";
import { byId, clock, count, formatLimits, h, percent } from "./dom.js";

const ROW = 16; // pixels of a row of labels above a chart
const MIN_DISTANCE = 8; // pixels: marks that are closer are drawn as one
const LONGEST_NAME = 22; // characters in a label
const LISTED = 6; // entries that are always shown
const FONT = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 11 };
const ruler = document.createElement("canvas").getContext("2d");

function describeLimits([min, max]) {
  const limits = formatLimits(min, max).replace("≥", "at least").replace("≤", "at most");
  return limits ? `limited to ${limits}` : "limits removed";
}

/** The text of an intervention, without the name of the arm. */
export function describe({ policy, continues, promoted, shadow, added, limits, paused, resumed, retired, guardrail }) {
  return [policy && (continues ? "decided by a new release" : `policy is now ${policy}${promoted ? ", promoted" : ""}`),
    shadow !== undefined && (shadow ? `shadow policy is now ${shadow}` : "shadow policy ended"), added && "added",
    limits && describeLimits(limits), paused && (guardrail ? `paused by the guardrail ${guardrail}` : "paused"),
    resumed && "resumed", retired && "retired"].filter(Boolean).join(", ");
}

const shortened = (name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

/** Possible labels of interventions that are drawn as one mark, the most detailed one first. */
function labels(group) {
  const texts = group.map(describe);
  const full = group.map(({ arm }, i) => (arm === null ? texts[i] : `${shortened(arm)} ${texts[i]}`));
  const sameArm = group.every(({ arm, column }) => arm !== null && column === group[0].column);
  const both = sameArm ? `${full[0]}, ${texts.at(-1)}` : full.join("; ");
  const sameText = group.every(({ arm }, i) => arm !== null && texts[i] === texts[0]);
  const summary = sameText ? `${group.length} arms ${texts[0]}` : `${group.length} changes`;
  return { 1: full, 2: [both, summary] }[group.length] ?? [summary];
}

/** Group interventions that would be closer than MIN_DISTANCE in a chart of this width. */
function groupMarks(interventions, toFraction, width) {
  const groups = [];
  for (const one of [...interventions].sort((a, b) => toFraction(a) - toFraction(b))) {
    const at = toFraction(one) * width;
    if (groups.length && at - groups.at(-1).at < MIN_DISTANCE) groups.at(-1).members.push(one);
    else groups.push({ at, members: [one] });
  }
  return groups;
}

/**
 * Place the label of each group in a row, the latest group first, so that no label overlaps another one or its line.
 * Sets `row` (-1: no room), `text` and `anchor` of each group, and returns the number of rows.
 */
function placeLabels(groups, width, rows) {
  const taken = Array.from({ length: rows }, () => []);
  const isFree = (row, from, to) => taken[row].every(([low, high]) => to < low || from > high);
  ruler.font = `${FONT.size}px ${FONT.family}`;
  for (const group of [...groups].reverse()) {
    const { at } = group;
    const fits = (row, [from, to]) => from >= 0 && to <= width && isFree(row, from, to) &&
      taken.slice(0, row).every((_, below) => isFree(below, at, at));
    const candidates = labels(group.members).flatMap((text) => {
      const length = ruler.measureText(text).width + 10;
      const [right, left] = [[at, at + length], [at - length, at]];
      // A label to the left of its line goes as high as possible, above the lines that it crosses
      return [{ text, span: right, anchor: "left", row: taken.findIndex((_, row) => fits(row, right)) },
        { text, span: left, anchor: "right", row: taken.findLastIndex((_, row) => fits(row, left)) }];
    });
    Object.assign(group, candidates.find(({ row }) => row >= 0) ?? { row: -1 });
    if (group.row < 0) continue;
    taken[group.row].push(group.span);
    for (let below = 0; below < group.row; below++) taken[below].push([at, at]);
  }
  const used = [...new Set(groups.map(({ row }) => row))].filter((row) => row >= 0).sort();
  for (const group of groups) group.row = used.indexOf(group.row);
  return used.length;
}

/**
 * The parts of a chart's layout that mark interventions: margin, lines and labels. `axis` has two functions of an
 * intervention: `toX` returns its position for Plotly, `toFraction` as a fraction of the width. `over` draws the lines
 * over the areas of the chart.
 */
export function interventionMarks(element, margin, interventions, { toX, toFraction }, over = false) {
  const { clientWidth, clientHeight } = element.querySelector(".canvas");
  const width = clientWidth - margin.l - margin.r;
  const groups = groupMarks(interventions, toFraction, width);
  const rows = placeLabels(groups, width, clientWidth < 500 ? 2 : 3);
  const top = margin.t + rows * ROW;
  const height = Math.max(1, clientHeight - top - margin.b);
  const [ink, line] = [paint("--soft"), paint(over ? "--ink" : "--edge")];
  return {
    margin: { ...margin, t: top },
    shapes: groups.map(({ members, row }) => ({
      type: "line", x0: toX(members[0]), x1: toX(members[0]), yref: "paper", y0: 0, y1: 1 + ((row + 1) * ROW - 2) / height,
      layer: over ? "above" : "below", line: { color: line, width: 1.3, dash: "dot" },
    })),
    annotations: groups.filter(({ row }) => row >= 0).map(({ members, text, anchor, row }) => ({
      x: toX(members[0]), y: 1, yref: "paper", yshift: row * ROW, yanchor: "bottom", xanchor: anchor, borderpad: 2,
      showarrow: false, text: plain(text), font: { ...FONT, color: ink },
      hovertext: members.map((one) => plain(`${clock(one.wall)} ${one.arm ?? ""} ${describe(one)}`)).join("<br>"),
    })),
  };
}

/** A dot in the colour of an arm, to stand beside its name. */
export function colourDot(column) {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  dot.style.background = seriesStyle(column).colour;
  return dot;
}

function timelineItem({ wall, step, arm, column, text }) {
  return h("li", {}, h("span", { class: "when" }, clock(wall), h("span", { class: "soft" }, ` after ${count(step)} decisions`)),
    h("span", {}, arm !== null && colourDot(column), arm !== null && h("strong", {}, arm), arm !== null && " ", text));
}

let shown = "";

/** List interventions and detected changes, the latest first. */
export function showTimeline({ interventions, changes, decisions }, timeOfStep) {
  const entries = [
    ...interventions.map((one) => ({ ...one, text: describe(one) })),
    ...changes.map((one) => ({ ...one, wall: timeOfStep(one.step),
      text: `change detected, from ${percent(one.before)} to ${percent(one.after)}` })),
  ].sort((a, b) => b.step - a.step || b.wall - a.wall);
  const content = JSON.stringify([entries, decisions > 0, seriesStyle(0).colour]);
  if (content === shown) return;
  shown = content;
  byId("timeline").replaceChildren(...entries.slice(0, LISTED).map(timelineItem));
  byId("earlier").replaceChildren(...entries.slice(LISTED).map(timelineItem));
  byId("earlier-timeline").hidden = entries.length <= LISTED;
  byId("timeline-empty").hidden = entries.length > 0 || decisions === 0;
  byId("timeline-title").hidden = entries.length === 0 && decisions === 0;
}
