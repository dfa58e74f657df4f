// The charts of a run: they fill as messages arrive, up to the step that is shown
import { byId, decimal, h } from "./dom.js";
import { Chart, band, layer, layout, line } from "./charts.js";

const PLAY_MS = 2200;
const ROWS = 12; // of a table

export class Screen {
  constructor() {
    this.run = null;
    this.words = "";
    this.charts = {
      regret: new Chart(byId("regret"), () => this.regret()),
      means: new Chart(byId("means"), () => this.means()),
      shares: new Chart(byId("shares"), () => this.shares()),
      forgetting: new Chart(byId("forgetting"), () => this.forgetting()),
    };
    byId("look").addEventListener("change", () => this.draw());
    byId("upto").addEventListener("input", () => {
      this.playing = false;
      this.reveal(Number(byId("upto").value));
    });
  }

  start({ policies, arms, horizon, link }, wanted) {
    const world = link.replace(/policies=[^&]*/, "");
    const { run } = this;
    // What was run in the same world just before stays visible, so that a change can be seen
    const before = run?.world === world && run.regret ? run : null;
    this.run = { policies, arms, horizon, world, before, path: null, beliefs: [], regret: null, upto: 0 };
    if (before) before.before = null;
    byId("look").replaceChildren(...policies.map((label, i) => h("option", { value: i }, label)));
    byId("look").value = String(Math.min(wanted ?? Infinity, policies.length - 1));
    byId("look").disabled = false;
    byId("charts").hidden = false;
    this.playing = true;
    this.draw();
  }

  /** Take in how the run stands: charts that have nothing to show yet say it. */
  say(state, text) {
    this.words = text;
    this.waiting = state === "running";
    if (this.run && !this.run.regret) this.draw();
  }

  /** Compare the next run with none. */
  forget() {
    if (this.run) this.run.world = null;
  }

  path(message) {
    const run = this.run;
    run.path = message;
    run.beliefs = run.policies.map(() => ({ mean: [], forgetting: [], share: [], known: 0 }));
    for (const one of run.beliefs) for (const kind of ["mean", "forgetting", "share"]) one[kind] = message.shown.map(() => []);
    byId("upto").max = String(message.times.length - 1);
    byId("upto").disabled = false;
  }

  beliefs(message) {
    const mine = this.run.beliefs[message.policy];
    for (const kind of ["mean", "forgetting", "share"]) {
      message[kind].forEach((row, arm) => mine[kind][arm].push(...row));
    }
    mine.known = mine.mean[0].length;
  }

  /** Let the time run from the first step to the last, as far as it is known; returns when it has. */
  async play() {
    const { run } = this;
    const last = run.path.times.length - 1;
    const began = performance.now();
    const length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : PLAY_MS;
    while (run.upto < last) {
      await new Promise((resolve) => setTimeout(resolve, 40));
      if (!this.playing || this.run !== run) return;
      const known = Math.min(...run.beliefs.map((one) => one.known)) - 1;
      const upto = Math.min(Math.floor(((performance.now() - began) / length) * last), known);
      if (upto > run.upto) this.reveal(upto);
    }
  }

  reveal(upto) {
    this.run.upto = Math.max(upto, 0);
    byId("upto").value = String(this.run.upto);
    const step = this.run.path.times[this.run.upto].toLocaleString("en");
    byId("upto-text").textContent = step;
    byId("upto").setAttribute("aria-valuetext", `step ${step}`);
    this.draw();
  }

  draw() {
    if (this.run) for (const chart of Object.values(this.charts)) chart.draw();
  }

  frame(y, more = {}) {
    return layout({ x: "step", y, ...more, xaxis: { range: [0, this.run.horizon] } });
  }

  regret() {
    const { run } = this;
    if (!run.regret) {
      // How large a regret will be is not known, so its axis has no numbers
      const frame = this.frame("regret", { yaxis: { range: [0, 1], showticklabels: false } });
      return { data: [], layout: frame, table: { caption: "Mean regret", head: ["step"], rows: [] }, note: this.words };
    }
    const { times, curves } = run.regret;
    const now = run.path.times[run.upto];
    const known = run.upto >= run.path.times.length - 1 ? times.length : times.filter((time) => time <= now).length;
    const x = times.slice(0, known);
    const old = this.before();
    const top = Math.max(...curves.map((one) => one.high.at(-1)), ...old.map(({ mean }) => mean.at(-1)), 1);
    const data = curves.flatMap((one, i) => [
      ...band(run.policies[i], x, one.low.slice(0, known), one.high.slice(0, known), i),
      line(run.policies[i], x, one.mean.slice(0, known), i, { form: ".1f", width: 2.5 }),
    ]);
    for (const { label, mean } of old) {
      data.push(line(`before: ${label}`, times, mean, 8, { form: ".1f", width: 1.5, dash: "dash" }));
    }
    const rows = thinned(known).map((i) => [times[i].toLocaleString("en"), ...curves.map((one) => decimal(one.mean[i], 1))]);
    return { data, layout: this.frame("regret", { yaxis: { range: [0, top * 1.05] }, legend: true }),
      table: { caption: "Mean cumulative regret", head: ["step", ...run.policies], rows } };
  }

  /** Curves of the run before this one, of policies that this one does not have. */
  before() {
    const { before, policies } = this.run;
    if (!before) return [];
    return before.policies.flatMap((label, i) =>
      policies.includes(label) ? [] : [{ label, mean: before.regret.curves[i].mean }]);
  }

  /** What the charts of the chosen policy share: the steps so far, and the numbers of each arm. */
  chosen(kind) {
    const { run } = this;
    const mine = run.beliefs[Number(byId("look").value)];
    if (!run.path || !mine) return null;
    const upto = Math.min(run.upto + 1, mine.known);
    const names = run.path.shown.map((arm) => `Arm ${arm + 1}`);
    return { x: run.path.times.slice(0, upto), rows: mine[kind].map((row) => row.slice(0, upto)), names, upto };
  }

  table(caption, found, digits) {
    const steps = thinned(found.upto);
    return { caption, head: ["step", ...found.names],
      rows: steps.map((i) => [found.x[i].toLocaleString("en"), ...found.rows.map((row) => decimal(row[i], digits))]) };
  }

  /** A chart of the first replication while there is none. */
  nothing(frame) {
    return { data: [], layout: frame, note: this.waiting ? "Comes with the first replication" : "" };
  }

  means() {
    const frame = this.frame("mean reward", { yaxis: { range: [0, 1.02] } });
    const found = this.chosen("mean");
    if (!found) return this.nothing(frame);
    const { truth } = this.run.path;
    const data = found.rows.flatMap((row, i) => [
      line(`${found.names[i]}, truth`, found.x, truth[i].slice(0, found.upto), i,
        { width: 1.4, dash: "dot", showlegend: false, steps: true }),
      line(found.names[i], found.x, row, i, { width: 2.6 }),
    ]);
    return { data, layout: frame, table: this.table("Estimated mean reward of each arm", found, 3) };
  }

  shares() {
    const frame = this.frame("share", { percent: true, yaxis: { range: [0, 1] } });
    const found = this.chosen("share");
    if (!found) return this.nothing(frame);
    const data = found.rows.map((row, i) => layer(found.names[i], found.x, row, i));
    if (found.rows.length < this.run.arms) {
      const others = found.x.map((_, t) => Math.max(0, 1 - found.rows.reduce((sum, row) => sum + row[t], 0)));
      data.push(layer("others", found.x, others, 8)); // grey
    }
    return { data, layout: frame, table: this.table("Share of each arm in the choices", found, 2) };
  }

  forgetting() {
    const found = this.chosen("forgetting");
    const low = found ? Math.min(0.9, ...found.rows.flat()) : 0.9;
    const frame = this.frame("factor", { yaxis: { range: [Math.max(0, low - 0.02), 1.005] } });
    if (!found) return this.nothing(frame);
    const data = found.rows.map((row, i) => line(found.names[i], found.x, row, i, { form: ".4f", steps: true }));
    return { data, layout: frame, table: this.table("Forgetting factor of each arm", found, 4) };
  }
}

/** A few places, spread evenly, the last one among them. */
function thinned(count) {
  const rows = Math.min(ROWS, count);
  return Array.from({ length: rows }, (_, i) => Math.round(((i + 1) * count) / rows) - 1);
}
