// What moved the traffic: marks on the charts, and the same in words
import { look, paint, plain } from "./charts.js";
import { byId, clock, count, h, limits, percent } from "./dom.js";

const ROW = 16; // pixels of a row of labels above a chart
const CLOSE = 8; // pixels: marks that are nearer than this are one
const LONGEST = 22; // letters of a name
const LISTED = 6; // moves that are shown at once
const FONT = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 11 };
const ruler = document.createElement("canvas").getContext("2d");

function limited([least, most]) {
  const held = limits(least, most).replace("≥", "at least").replace("≤", "at most");
  return held ? `limited to ${held}` : "limits lifted";
}

/** What people did in an intervention, without the arm. */
export function deed({ policy, added, limits: range, paused, resumed, retired }) {
  return [policy && `policy is now ${policy}`, added && "added", range && limited(range),
    paused && "paused", resumed && "resumed", retired && "retired"].filter(Boolean).join(", ");
}

const short = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

/** Labels for interventions that lie at one place of a chart, the best one first. */
function labels(together) {
  const deeds = together.map(deed);
  const whole = together.map(({ arm }, i) => (arm === null ? deeds[i] : `${short(arm)} ${deeds[i]}`));
  const same = together.every(({ arm, column }) => arm !== null && column === together[0].column);
  const both = same ? `${whole[0]}, ${deeds.at(-1)}` : whole.join("; ");
  const alike = together.every(({ arm }, i) => arm !== null && deeds[i] === deeds[0]);
  const few = alike ? `${together.length} arms ${deeds[0]}` : `${together.length} changes`;
  return { 1: whole, 2: [both, few] }[together.length] ?? [few];
}

/** Interventions in their order, those together that a chart of this width cannot hold apart. */
function grouped(interventions, shareOf, width) {
  const groups = [];
  for (const one of [...interventions].sort((a, b) => shareOf(a) - shareOf(b))) {
    const at = shareOf(one) * width;
    if (groups.length && at - groups.at(-1).at < CLOSE) groups.at(-1).together.push(one);
    else groups.push({ at, together: [one] });
  }
  return groups;
}

/** Give labels a row each, the latest first, so that none lies on another or on the line of another. */
function arranged(groups, width, rows) {
  const taken = Array.from({ length: rows }, () => []);
  const free = (row, from, to) => taken[row].every(([low, high]) => to < low || from > high);
  ruler.font = `${FONT.size}px ${FONT.family}`;
  for (const group of [...groups].reverse()) {
    const { at } = group;
    const fits = (row, [from, to]) => from >= 0 && to <= width && free(row, from, to) &&
      taken.slice(0, row).every((_, below) => free(below, at, at));
    const tries = labels(group.together).flatMap((text) => {
      const length = ruler.measureText(text).width + 10;
      const [right, left] = [[at, at + length], [at - length, at]];
      // One that goes to the left stands over the lines that it passes
      return [{ text, span: right, anchor: "left", row: taken.findIndex((_, row) => fits(row, right)) },
        { text, span: left, anchor: "right", row: taken.findLastIndex((_, row) => fits(row, left)) }];
    });
    Object.assign(group, tries.find(({ row }) => row >= 0) ?? { row: -1 });
    if (group.row < 0) continue;
    taken[group.row].push(group.span);
    for (let below = 0; below < group.row; below++) taken[below].push([at, at]);
  }
  const used = [...new Set(groups.map(({ row }) => row))].filter((row) => row >= 0).sort();
  for (const group of groups) group.row = used.indexOf(group.row);
  return used.length;
}

/**
 * The marks of a chart: what its layout gets. `place` is its element, `axis` says where an intervention is: as a share
 * of the width by `shareOf`, and as Plotly takes it by `spot`. `over` draws the lines over areas that fill the chart.
 */
export function marked(place, margin, interventions, { shareOf, spot }, over = false) {
  const { clientWidth, clientHeight } = place.querySelector(".canvas");
  const width = clientWidth - margin.l - margin.r;
  const groups = grouped(interventions, shareOf, width);
  const rows = arranged(groups, width, clientWidth < 500 ? 2 : 3);
  const top = margin.t + rows * ROW;
  const height = Math.max(1, clientHeight - top - margin.b);
  const [ink, line] = [paint("--soft"), paint(over ? "--ink" : "--edge")];
  return {
    margin: { ...margin, t: top },
    shapes: groups.map(({ together, row }) => ({
      type: "line", x0: spot(together[0]), x1: spot(together[0]), yref: "paper", y0: 0, y1: 1 + ((row + 1) * ROW - 2) / height,
      layer: over ? "above" : "below", line: { color: line, width: 1.3, dash: "dot" },
    })),
    annotations: groups.filter(({ row }) => row >= 0).map(({ together, text, anchor, row }) => ({
      x: spot(together[0]), y: 1, yref: "paper", yshift: row * ROW, yanchor: "bottom", xanchor: anchor, borderpad: 2,
      showarrow: false, text: plain(text), font: { ...FONT, color: ink },
      hovertext: together.map((one) => plain(`${clock(one.wall)} ${one.arm ?? ""} ${deed(one)}`)).join("<br>"),
    })),
  };
}

/** A dot in the colour of an arm; its name stands beside it. */
export function dot(column) {
  const made = h("span", { class: "dot", "aria-hidden": "true" });
  made.style.background = look(column).colour;
  return made;
}

function item({ wall, step, arm, column, text }) {
  return h("li", {}, h("span", { class: "when" }, clock(wall), h("span", { class: "soft" }, ` after ${count(step)} decisions`)),
    h("span", {}, arm !== null && dot(column), arm !== null && h("strong", {}, arm), arm !== null && " ", text));
}

let shown = "";

/** List what people did and what was detected, the latest first. */
export function showMoves({ interventions, changes, decisions }, wallAt) {
  const moves = [
    ...interventions.map((one) => ({ ...one, text: deed(one) })),
    ...changes.map((one) => ({ ...one, wall: wallAt(one.step),
      text: `a change was detected, from ${percent(one.before)} to ${percent(one.after)}` })),
  ].sort((a, b) => b.step - a.step || b.wall - a.wall);
  const text = JSON.stringify([moves, decisions > 0, look(0).colour]);
  if (text === shown) return;
  shown = text;
  byId("moves").replaceChildren(...moves.slice(0, LISTED).map(item));
  byId("earlier").replaceChildren(...moves.slice(LISTED).map(item));
  byId("earlier-moves").hidden = moves.length <= LISTED;
  byId("moves-none").hidden = moves.length > 0 || decisions === 0;
  byId("moves-title").hidden = moves.length === 0 && decisions === 0;
}
