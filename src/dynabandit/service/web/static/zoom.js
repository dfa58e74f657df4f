// The period that the charts of a bandit show: all, the last decisions, the last time, or what was selected by dragging
import { byId, count } from "./dom.js";

const select = byId("period");
let whole = null; // the latest data
let dragged = null; // ends of a period that was selected in a chart: { step, wall }, two numbers each

/** The latest data, of all periods. */
export const wholeData = () => whole;

/** Whether only a part is shown. */
export const isZoomed = () => select.value !== "all";

/** The value of `to` at a value of `from`, both of which increase, by linear interpolation. */
function interpolated(value, from, to) {
  const next = from.findIndex((one) => one >= value);
  if (next === 0) return to[0];
  if (next < 0) return to.at(-1);
  const [low, high] = [from[next - 1], from[next]];
  return to[next - 1] + ((value - low) / (high - low)) * (to[next] - to[next - 1]);
}

/** The ends of the period on the axis of times or of decisions; null for all. */
export function shownRange(byTime) {
  if (!isZoomed() || whole.series.step.length === 0) return null;
  if (select.value === "dragged") return byTime ? dragged.wall : dragged.step;
  const { step, wall } = whole.series;
  const [unit, size] = select.value.split(" ");
  const [own, other] = unit === "decisions" ? [step, wall] : [wall, step];
  const start = Math.max(own[0], own.at(-1) - Number(size));
  const isOwn = byTime === (unit === "seconds");
  return isOwn ? [start, own.at(-1)] : [interpolated(start, own, other), other.at(-1)];
}

/** The part of the data in the period, with one point before and one after it, which the curves lead to. */
export function periodOf(data) {
  whole = data;
  const range = shownRange(false);
  byId("period-note").hidden = range === null;
  byId("period-reset").hidden = range === null;
  if (range === null) return data;
  const { step } = data.series;
  const inside = step.map((_, i) => i).filter((i) => step[i] >= range[0] && step[i] <= range[1]);
  const spacing = step.length > 1 ? step[1] - step[0] : 1;
  byId("period-note").textContent = `Points in this period: ${inside.length}, one per ${count(spacing)} decisions.`;
  const after = step.findIndex((last) => last > range[1]);
  const from = Math.max(0, (inside[0] ?? (after < 0 ? step.length : after)) - 1);
  const to = after < 0 ? step.length : after + 1;
  const part = (values) => values.slice(from, to);
  const parts = (object, keys) => Object.fromEntries(keys.map((key) => [key, part(object[key])]));
  const { lift, ...series } = data.series;
  const isInside = (one) => one.step >= range[0] && one.step <= range[1];
  return {
    ...data,
    series: { ...parts(series, Object.keys(series)), lift: lift.map(part) },
    lines: data.lines.map((line) => ({ ...line, ...parts(line, ["share", "mean", "low", "high", "forgetting"]) })),
    others: data.others && { ...data.others, share: part(data.others.share) },
    changes: data.changes.filter(isInside),
    interventions: data.interventions.filter(isInside),
  };
}

let changed = () => {};

/** Call `onChange` when another period was selected. */
export function onZoom(onChange) {
  changed = onChange;
}

function setPeriod(value) {
  select.querySelector("[value=dragged]").hidden = value !== "dragged";
  select.value = value;
  changed();
}

select.addEventListener("change", () => setPeriod(select.value));
byId("period-reset").addEventListener("click", () => {
  setPeriod("all");
  select.focus(); // the button disappears
});

/** A position that Plotly reports: a number of decisions, or a local time. */
const toNumber = (value, byTime) => (byTime ? new Date(String(value).replace(" ", "T")).getTime() / 1000 : Number(value));

/** Let people select a period by dragging in a chart, and all by a double click; `isByTime` tells its horizontal axis. */
export function zoomByDragging(canvas, isByTime) {
  if (canvas.dataset.zooms) return;
  canvas.dataset.zooms = "yes";
  canvas.on("plotly_relayout", (change) => {
    if (change["xaxis.range[0]"] === undefined) return;
    const ends = [0, 1].map((end) => toNumber(change[`xaxis.range[${end}]`], isByTime()));
    const { step, wall } = whole.series;
    const [own, other] = isByTime() ? [wall, step] : [step, wall];
    const others = ends.map((end) => interpolated(end, own, other));
    dragged = isByTime() ? { wall: ends, step: others } : { step: ends, wall: others };
    setPeriod("dragged");
  });
  canvas.on("plotly_doubleclick", () => setPeriod("all"));
}
