// One bandit: what it does, what it believes, what it has earned
import { at, call, download, follow } from "./api.js";
import { band, Chart, layer, layout, line, look, marks, paint, plotly } from "./charts.js";
import { showConnection } from "./connection.js";
import { byId, clock, count, decimal, fieldProblem, h, percent } from "./dom.js";
import { onSubmit, open, placeProblem, PolicyFields } from "./forms.js";

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

/** Where the points are on the axis; a step in between is at the end of its point. */
const places = () => (byClock ? view.series.wall.map(moment) : view.series.step);
const placeOf = (step) => {
  if (!byClock) return step;
  const index = view.series.step.findIndex((end) => end >= step);
  return moment(view.series.wall.at(index));
};
const decisions = () => ({ x: byClock ? "time" : "decisions", legend: false, margin: { l: 48, r: 16, t: 12, b: 40 } });
const upright = (step, colour, dash) => ({
  type: "line", x0: placeOf(step), x1: placeOf(step), yref: "paper", y0: 0, y1: 1, layer: "below", line: { color: colour, width: 1.3, dash },
});
const swaps = () => view.swaps.map(({ step }) => upright(step, paint("--edge"), "dot"));
const changed = () => view.changes.map(({ step, column }) => upright(step, look(column).colour, "dash"));

function sharePart() {
  const { lines, others } = view;
  const layers = lines.map((one) => layer(one.arm, places(), one.share, one.column));
  if (others) layers.push(layer(`${count(others.arms)} other arms`, places(), others.share, OTHERS));
  return {
    data: layers,
    layout: layout({ ...decisions(), percent: true, yaxis: { range: [0, 1] }, shapes: swaps() }),
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
    layout: layout({ ...decisions(), percent: true, yaxis: { range: [0, Math.min(1, high)] }, shapes: swaps() }),
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
    layout: layout({ ...decisions(), yaxis: { tickformat: ".3~f" }, shapes: [...swaps(), ...changed()] }),
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
      line("choosing at random (estimated)", places(), series.middle, 8, { form: ",.0f", dash: "dash", colour: grey }),
      line("earned", places(), series.total, EARNED, { form: ",.0f", width: 2.5 }),
    ],
    layout: layout({ ...decisions(), legend: true, yaxis: { rangemode: "tozero" }, shapes: swaps() }),
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
  let words = "No decision yet. Ask for one with POST /v1/bandits/…/decisions.";
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
  return h("tr", { "data-arm": one.arm },
    h("th", { scope: "row" }, dot(one.column), one.arm, " ", one.paused && h("span", { class: "badge warm" }, "paused")),
    h("td", { class: "number" }, percent(one.recent_share), h("span", { class: "track", "aria-hidden": "true" }, bar)),
    h("td", { class: "number roomy" }, count(one.plays)),
    h("td", { class: "number" }, percent(one.mean)),
    h("td", { class: "number roomy" }, one.mean === null ? "–" : `${percent(one.low)} to ${percent(one.high)}`),
    h("td", { class: "number roomy" }, decimal(one.forgetting, 4)),
    h("td", { class: "number roomy" }, count(one.effective_size)),
    h("td", { class: "acts" },
      admin && act(one.paused ? "Resume" : "Pause", one.arm, () => change(one.arm, { paused: !one.paused })),
      admin && act("Retire", one.arm, () => askRetire(one.arm), "small quiet")));
}

/** A dot in the colour of an arm; its name stands beside it. */
function dot(column) {
  const made = h("span", { class: "dot", "aria-hidden": "true" });
  made.style.background = look(column).colour;
  return made;
}

function showLegend() {
  const items = view.lines.map((one) => h("li", {}, dot(one.column), one.arm));
  if (view.others) items.push(h("li", {}, dot(OTHERS), `${count(view.others.arms)} other arms`));
  byId("legend").replaceChildren(...items);
}

let shownArms = "";

function showArms() {
  const text = JSON.stringify([admin, view.arms]);
  if (text === shownArms) return;
  shownArms = text;
  const focused = document.activeElement?.dataset?.act;
  byId("arms").replaceChildren(...view.arms.map(armRow));
  if (focused) {
    const words = focused.replace(/^(Pause|Resume) /, "");
    [...byId("arms").querySelectorAll("[data-act]")]
      .find((one) => one.dataset.act === focused || /^(Pause|Resume) /.test(one.dataset.act) && one.dataset.act.endsWith(` ${words}`))?.focus();
  }
  const more = view.arm_count - view.arms.length;
  byId("arms-note").textContent = more > 0 ? `the ${count(view.arms.length)} most played of ${count(view.arm_count)}` : "";
}

const WHAT = {
  create: "created", decision: "decision", reward: "reward", close: "window ended", arm: "arm", policy: "policy", delete: "deleted",
};

function eventRow(one) {
  let what = WHAT[one.kind];
  if (one.kind === "policy") what += ` is now ${one.change.policy}`;
  if (one.kind === "arm") {
    const { arm, ...rest } = one.change;
    what += ` ${Object.entries(rest).map(([key, value]) => (value === true ? key : `${key} ${value}`)).join(", ")}`;
  }
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

// Actions

function askRetire(arm) {
  byId("retire-name").textContent = arm;
  byId("retire-form").dataset.arm = arm;
  open(byId("retire-dialog"));
}

function previewTable(found) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Preview" }, h("table", {},
    h("caption", {}, `After the ${count(found.rewards)} rewards so far, ${found.policy} would choose:`),
    h("thead", {}, h("tr", {},
      h("th", { scope: "col" }, "Arm"), h("th", { scope: "col", class: "number" }, `Chance with ${found.current_policy}, now`),
      h("th", { scope: "col", class: "number" }, `Chance with ${found.policy}`), h("th", { scope: "col", class: "number" }, "Mean it would believe"))),
    h("tbody", {}, found.arms.slice(0, 50).map((arm) => h("tr", {},
      h("th", { scope: "row" }, arm.arm, arm.paused && " (paused)"), h("td", { class: "number" }, percent(arm.current_propensity)),
      h("td", { class: "number" }, percent(arm.propensity)), h("td", { class: "number" }, percent(arm.mean)))))));
}

function prepareExport() {
  byId("export-button").onclick = () => open(byId("export-dialog"));
  onSubmit(byId("export-form"), async () => {
    const what = byId("export-form").elements.what.value;
    if (what === "events") await download(`${at("v1", "bandits", name, "events")}?format=ndjson`, `${name}-events.ndjson`);
    else if (what === "decisions") await download(`${at("v1", "bandits", name, "export")}?format=ndjson`, `${name}-decisions.ndjson`);
    else await download(`${at("v1", "bandits", name, "export")}?format=parquet`, `${name}-decisions.parquet`);
    byId("export-dialog").close();
  }, (error) => { byId("export-problem").textContent = error.message; });
}

function prepareArms() {
  byId("add-button").onclick = () => open(byId("add-dialog"));
  onSubmit(byId("add-form"), async () => {
    await call("POST", at("v1", "bandits", name, "arms"), { arm: byId("add-arm").value });
    byId("add-arm").value = "";
    byId("add-dialog").close();
  }, (error) => fieldProblem(byId("add-arm"), error.message));
  onSubmit(byId("retire-form"), async () => {
    await call("PATCH", at("v1", "bandits", name, "arms", byId("retire-form").dataset.arm), { retired: true });
    byId("retire-dialog").close();
  }, (error) => { byId("retire-problem").textContent = error.message; });
}

function prepareDelete() {
  byId("delete-button").onclick = () => open(byId("delete-dialog"));
  onSubmit(byId("delete-form"), async () => {
    const query = new URLSearchParams({ confirm: byId("delete-confirm").value, erase: byId("delete-erase").checked });
    await call("DELETE", `${at("v1", "bandits", name)}?${query}`);
    location.href = "/";
  }, (error) => fieldProblem(byId("delete-confirm"), error.message));
}

async function prepareSwap() {
  const { policies } = await call("GET", "/pages/policies");
  const fields = new PolicyFields(byId("swap-policy-place"), "swap", policies, view?.policy ?? "aff-ots");
  byId("swap-button").onclick = () => {
    byId("preview").replaceChildren();
    open(byId("swap-dialog"));
  };
  byId("preview-button").onclick = async () => {
    for (const place of byId("swap-form").querySelectorAll(".problem")) place.textContent = "";
    byId("preview").replaceChildren(h("p", { class: "soft" }, "Replaying the rewards…"));
    try {
      const draws = Math.max(1, Math.min(1000, Math.floor(1e7 / (view?.arm_count ?? 1)))); // the service draws no more
      const found = await call("POST", at("v1", "bandits", name, "policy", "preview"), { ...fields.values(), draws });
      byId("preview").replaceChildren(previewTable(found));
    } catch (error) {
      byId("preview").replaceChildren();
      placeProblem("swap", error);
    }
  };
  onSubmit(byId("swap-form"), async () => {
    await call("PUT", at("v1", "bandits", name, "policy"), fields.values());
    byId("swap-dialog").close();
  }, (error) => placeProblem("swap", error));
}

async function prepareActions() {
  const { role } = await call("GET", "/pages/who");
  byId("actions").hidden = false;
  admin = role === "admin";
  for (const id of ["add-button", "swap-button", "delete-button"]) byId(id).hidden = !admin;
  if (view) showArms();
  prepareExport();
  if (!admin) return;
  prepareArms();
  prepareDelete();
  await prepareSwap();
}

follow(() => `/pages/bandit?name=${encodeURIComponent(name)}`, (event, now) => show(now), (state) => {
  showConnection(state);
  if (state.status === 404) setText("gone", "There is no bandit with this name.");
});
document.documentElement.addEventListener("theme", () => {
  shownArms = "";
  if (view) show(view);
});
prepareActions().catch(() => {});
