// The charts of a run. They grow as messages arrive, up to the step that is shown
import { band, Chart, layer, layout, line, OTHERS, policyColour, seriesStyle } from "./charts.js";
import { byId, decimal, h } from "./dom.js";

const PLAY_MS = 4000;
const FRAME_MS = 40;
const TABLE_ROWS = 12;

export class RunCharts {
  constructor() {
    this.run = null;
    this.status = "";
    this.charts = {
      regret: new Chart(byId("regret"), () => this.regretChart()),
      means: new Chart(byId("means"), () => this.meansChart()),
      shares: new Chart(byId("shares"), () => this.sharesChart()),
      forgetting: new Chart(byId("forgetting"), () => this.forgettingChart()),
    };
    byId("traced-policy").addEventListener("change", () => this.draw());
    byId("last-step").addEventListener("input", () => {
      this.setPlaying(null);
      this.showUpTo(Number(byId("last-step").value));
    });
    byId("play").addEventListener("click", () => (this.playing ? this.setPlaying(null) : this.play()));
    byId("clear-previous").addEventListener("click", () => {
      this.run.previous = null;
      this.showPrevious();
      this.draw();
      byId("play").focus({ preventScroll: true });
    });
  }

  /** Start a run; `wanted` is the index of the policy whose first replication is shown, by default the last one. */
  start({ policies, arms, horizon, link }, wanted) {
    const environment = link.replace(/(policies|replications|seed)=[^&]*/g, "");
    // The curves of the previous run in the same environment stay visible, to compare
    const latest = this.run?.regret ? this.run : this.run?.previous;
    const previous = latest?.environment === environment ? latest : null;
    this.run = { policies, arms, horizon, environment, previous, path: null, traces: [], regret: null, last: 0 };
    if (previous) previous.previous = null;
    this.setPlaying(null);
    this.showPrevious();
    byId("traced-policy").replaceChildren(...policies.map((label, i) => h("option", { value: i }, label)));
    byId("traced-policy").value = String(Math.min(wanted ?? Infinity, policies.length - 1));
    byId("traced-policy").disabled = false;
    byId("charts").hidden = false;
    byId("no-results").hidden = true;
    byId("shown-steps").hidden = true;
    this.draw();
  }

  /** Show whether there are curves of a previous run. */
  showPrevious() {
    byId("previous").hidden = !this.run.previous;
  }

  /** Set the status text, which charts without data show. */
  setStatus(state, text) {
    this.status = text;
    this.waiting = state === "running";
    if (this.run && !this.run.regret) this.draw();
  }

  /** Do not compare the next run with the earlier ones. */
  forgetPrevious() {
    if (!this.run) return;
    this.run.environment = null;
    this.run.previous = null;
  }

  /** Take the times and true means of the first replication. */
  addPath(message) {
    this.run.path = message;
    this.run.last = message.times.length - 1;
  }

  /** Take what a policy estimated and chose in the first replication. */
  addTrace(message) {
    this.run.traces[message.policy] = message;
  }

  /** Take the mean regret so far; the first message comes after those of the first replication. */
  addRegret(message) {
    const isFirst = !this.run.regret;
    this.run.regret = message;
    if (!isFirst) {
      this.charts.regret.draw();
      return;
    }
    byId("shown-steps").hidden = false;
    byId("last-step").max = String(this.run.last);
    this.showUpTo(this.run.last);
  }

  setPlaying(playing) {
    this.playing = playing;
    byId("play").textContent = playing ? "Pause" : "Play";
  }

  /** Move the shown step to the last one, from the first one if all are shown. */
  async play() {
    const { run } = this;
    const last = run.path.times.length - 1;
    const first = run.last < last ? run.last : 0;
    const start = performance.now();
    const mine = {}; // a second click on Play would else leave the first loop running, too
    this.setPlaying(mine);
    this.showUpTo(first);
    while (run.last < last) {
      await new Promise((resolve) => setTimeout(resolve, FRAME_MS));
      if (this.playing !== mine) return;
      this.showUpTo(Math.min(first + Math.ceil(((performance.now() - start) / PLAY_MS) * last), last));
    }
    this.setPlaying(null);
  }

  /** Show the charts up to the recorded time with this index. */
  showUpTo(index) {
    this.run.last = index;
    byId("last-step").value = String(this.run.last);
    const step = this.run.path.times[this.run.last].toLocaleString("en");
    byId("last-step-text").textContent = step;
    byId("last-step").setAttribute("aria-valuetext", `step ${step}`);
    this.draw();
  }

  async draw() {
    if (this.run) await Promise.all(Object.values(this.charts).map((chart) => chart.draw()));
  }

  chartLayout(y, more = {}) {
    return layout({ x: "step", y, ...more, xaxis: { range: [0, this.run.horizon] } });
  }

  regretChart() {
    const { run } = this;
    const previous = this.previousCurves();
    if (!run.regret) {
      // Without a previous run the range of the regret is not known yet, so the axis has no numbers
      const yaxis = previous.length ? { rangemode: "tozero" } : { range: [0, 1], showticklabels: false };
      const table = { caption: "Mean cumulative regret", head: ["step"], rows: [] };
      return { data: previous, layout: this.chartLayout("regret", { yaxis }), table, note: this.status };
    }
    const { times, curves } = run.regret;
    const step = run.path.times[run.last];
    const known = run.last >= run.path.times.length - 1 ? times.length : times.filter((time) => time <= step).length;
    const x = times.slice(0, known);
    const top = Math.max(...curves.map((one) => one.high.at(-1)), ...previous.map(({ y }) => y.at(-1)), 1);
    const data = curves.flatMap((one, i) => [
      ...band(run.policies[i], x, one.low.slice(0, known), one.high.slice(0, known), i, { colour: policyColour(i) }),
      line(run.policies[i], x, one.mean.slice(0, known), i, { form: ".1f", width: 2.5, colour: policyColour(i) }),
    ]);
    const rows = spreadIndices(known).map((i) => [times[i].toLocaleString("en"), ...curves.map((one) => decimal(one.mean[i], 1))]);
    return { data: [...data, ...previous], layout: this.chartLayout("regret", { yaxis: { range: [0, top * 1.05] }, legend: true }),
      table: { caption: "Mean cumulative regret", head: ["step", ...run.policies], rows } };
  }

  /** The curves of the previous run, dashed: in the colour of the same policy, or grey if this run does not have it. */
  previousCurves() {
    const { previous, policies } = this.run;
    if (!previous) return [];
    const names = policies.map(policyName);
    return previous.policies.map((label, i) => {
      const same = [policies.indexOf(label), names.indexOf(policyName(label))].find((index) => index >= 0);
      const colour = same === undefined ? seriesStyle(OTHERS).colour : policyColour(same);
      const { times, curves } = previous.regret;
      return line(`previous run: ${label}`, times, curves[i].mean, same ?? OTHERS,
        { form: ".1f", width: 1.5, dash: "dash", showlegend: false, colour });
    });
  }

  /** The steps shown and the values of each arm for the selected policy, or null before the first message. */
  tracedPolicy(kind) {
    const { run } = this;
    const trace = run.traces[Number(byId("traced-policy").value)];
    if (!run.regret || !trace) return null;
    const known = run.last + 1;
    const names = run.path.shown.map((arm) => `Arm ${arm + 1}`);
    return { x: run.path.times.slice(0, known), rows: trace[kind].map((row) => row.slice(0, known)), names, known };
  }

  armTable(caption, { x, rows, names, known }, digits) {
    return { caption, head: ["step", ...names],
      rows: spreadIndices(known).map((i) => [x[i].toLocaleString("en"), ...rows.map((row) => decimal(row[i], digits))]) };
  }

  /** A chart of the first replication before it has data. */
  emptyChart(emptyLayout) {
    return { data: [], layout: emptyLayout, note: this.waiting ? "Waiting for the first replication" : "" };
  }

  meansChart() {
    const meansLayout = this.chartLayout("mean reward", { yaxis: { range: [0, 1.02] } });
    const traced = this.tracedPolicy("mean");
    if (!traced) return this.emptyChart(meansLayout);
    const { truth } = this.run.path;
    const data = traced.rows.flatMap((row, i) => [
      line(`${traced.names[i]}, true mean`, traced.x, truth[i].slice(0, traced.known), i,
        { width: 1.4, dash: "dot", showlegend: false, steps: true }),
      line(traced.names[i], traced.x, row, i, { width: 2.6 }),
    ]);
    return { data, layout: meansLayout, table: this.armTable("Estimated mean reward of each arm", traced, 3) };
  }

  sharesChart() {
    const sharesLayout = this.chartLayout("share", { percent: true, yaxis: { range: [0, 1] } });
    const traced = this.tracedPolicy("share");
    if (!traced) return this.emptyChart(sharesLayout);
    const data = traced.rows.map((row, i) => layer(traced.names[i], traced.x, row, i));
    if (traced.rows.length < this.run.arms) {
      const others = traced.x.map((_, t) => Math.max(0, 1 - traced.rows.reduce((sum, row) => sum + row[t], 0)));
      data.push(layer("others", traced.x, others, OTHERS));
    }
    return { data, layout: sharesLayout, table: this.armTable("Share of each arm in the choices", traced, 2) };
  }

  forgettingChart() {
    const traced = this.tracedPolicy("forgetting");
    const lowest = traced ? Math.min(0.9, ...traced.rows.flat()) : 0.9;
    const forgettingLayout = this.chartLayout("factor", { yaxis: { range: [Math.max(0, lowest - 0.02), 1.005] } });
    if (!traced) return this.emptyChart(forgettingLayout);
    const data = traced.rows.map((row, i) => line(traced.names[i], traced.x, row, i, { form: ".4f", steps: true }));
    return { data, layout: forgettingLayout, table: this.armTable("Forgetting factor of each arm", traced, 4) };
  }
}

/** The name in a label such as `dts(memory=5)`. */
function policyName(label) {
  return label.split("(")[0];
}

/** Up to TABLE_ROWS indices below `count`, spread evenly, the last one included. */
function spreadIndices(count) {
  const rows = Math.min(TABLE_ROWS, count);
  return Array.from({ length: rows }, (_, i) => Math.round(((i + 1) * count) / rows) - 1);
}
