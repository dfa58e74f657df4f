// The playground: runs what the form describes, shows the results, and guides through the tour
import { call, postStream } from "./api.js";
import { byId, copy, count, h, save } from "./dom.js";
import { RunCharts } from "./playground-charts.js";
import { Drawing } from "./playground-drawing.js";
import { Form } from "./playground-form.js";

const results = byId("results");
const embedded = (id) => JSON.parse(byId(id).textContent);
const catalogue = embedded("catalogue");
const tour = embedded("tour");
const BUSY_MS = 500; // between two attempts while the service has other runs
const charts = new RunCharts();
const drawing = new Drawing(byId("drawing"), catalogue);
const form = new Form(catalogue, drawing, () => {
  markOutdated();
  if (byId("auto-run").checked) run();
});
const INITIAL = `v=${catalogue.version}&environment=drawn&arms=3&drawn=${drawing.encode()}&policies=ts;${catalogue.recommended}` +
  "&horizon=6000&replications=20&seed=1";

let running = null; // the AbortController of the run in progress
let runs = 0; // that were started; `data-runs` of the results beside `data-state`, which is that of the latest run
let shown = null; // what the form described when the run that is shown was started
let formats = null; // the last run as link, TOML and Python
let stageStart = 0; // when the current status began, as performance.now()
let tracedPolicy = null; // the index of the policy to show, or null for the last one

function setStatus(state, text) {
  if (byId("status").textContent !== text) stageStart = performance.now();
  results.dataset.state = state;
  byId("status").textContent = text;
  byId("stop-button").disabled = state !== "running";
  charts.setStatus(state, text);
  showElapsed();
}

/** Show how long a stage of a run has taken, if it takes long, such as compiling a policy. */
function showElapsed() {
  const seconds = Math.floor((performance.now() - stageStart) / 1000);
  byId("elapsed").textContent = results.dataset.state === "running" && seconds >= 2 ? `${seconds} s` : "";
}

/** Show whether the form still describes the run that is shown. */
function markOutdated() {
  const isOutdated = shown !== null && form.link() !== shown;
  results.dataset.outdated = String(isOutdated);
  byId("outdated").hidden = !isOutdated;
}

async function run({ scroll = false } = {}) {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  const described = form.link();
  try {
    const checked = await call("POST", "/playground/check", { link: described }, mine.signal);
    form.showProblems(checked.problems);
    if (checked.problems.length) {
      setStatus("idle", "Not started: see the message beside the field.");
      return;
    }
    keepFormats(checked);
    results.dataset.runs = String(++runs);
    setStatus("running", "Starting\u00a0…");
    if (scroll && byId("regret").getBoundingClientRect().bottom < 0) byId("regret-title").scrollIntoView();
    byId("progress").removeAttribute("value");
    await showRun(checked.link, described, mine.signal);
  } catch (error) {
    if (running !== mine) return;
    if (error.name === "AbortError") setStatus("stopped", `Stopped. ${progressText()}`);
    else setStatus("failed", error.message);
  } finally {
    if (running === mine) {
      running = null;
      const regret = charts.run?.regret;
      byId("progress").value = regret ? regret.done / regret.replications : 0;
    }
  }
}

/** Start a run on the server, as soon as it has room for one, and show its messages as they arrive. */
async function showRun(link, described, signal) {
  let last = null;
  const handlers = {
    doing: ({ text }) => setStatus("running", `${text[0].toUpperCase()}${text.slice(1)}\u00a0…`),
    start: (message) => {
      shown = described;
      markOutdated();
      byId("features-hint").hidden = !form.environment().contextual;
      charts.start(message, tracedPolicy);
    },
    path: (message) => charts.addPath(message),
    beliefs: (message) => charts.addTrace(message),
    regret: (message) => {
      charts.addRegret(message);
      setStatus("running", progressText());
      byId("progress").value = message.done / message.replications;
    },
  };
  const onMessage = (_, message) => {
    if (signal.aborted) return;
    last = message;
    handlers[message.kind]?.(message);
  };
  while (!(await isStarted(() => postStream("/playground/run", { link }, onMessage, signal)))) {
    await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    signal.throwIfAborted();
  }
  await charts.draw();
  if (signal.aborted) return;
  if (last?.kind === "end") setStatus("done", `Finished: ${progressText()}`);
  else setStatus("failed", last?.kind === "failed" ? `Not finished: ${last.text}.` : "Not finished: the connection was lost.");
}

/** Whether the service did not refuse a run because it has others; one that was just stopped may still be ending. */
async function isStarted(start) {
  try {
    await start();
    return true;
  } catch (error) {
    if (error.status !== 429) throw error;
    setStatus("running", error.message);
    return false;
  }
}

function progressText() {
  const regret = charts.run?.regret;
  return regret ? `${count(regret.done)} of ${count(regret.replications)} replications.` : "No results yet.";
}

/** Keep the other formats of a run, and put its link into the address bar. */
function keepFormats(checked) {
  formats = checked;
  history.replaceState(null, "", `/playground?${checked.link}`);
  for (const id of ["copy", "toml", "python"]) byId(id).disabled = false;
}

function showText(title, hint, text, file) {
  byId("text-title").textContent = title;
  byId("text-hint").textContent = hint;
  byId("text").textContent = text;
  byId("text-copy").onclick = () => copy(text, byId("text-copy"));
  byId("text-download").onclick = () => save(new Blob([text], { type: "text/plain" }), file);
  byId("text-dialog").showModal();
}

/** Show a step of the tour and run it. */
async function goToStep(index) {
  const step = tour[index];
  for (const [i, button] of [...byId("tour-steps").querySelectorAll("button")].entries()) {
    if (i === index) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  byId("tour-step").hidden = false;
  byId("tour-card").scrollIntoView(); // with the charts below it
  byId("tour-step-title").textContent = `${index + 1}. ${step.title}`;
  byId("tour-step-text").replaceChildren(...step.text.map((paragraph) => h("p", {}, paragraph)));
  byId("next-step").hidden = index === tour.length - 1;
  byId("next-step").onclick = () => goToStep(index + 1);
  await form.fill(step.link);
  tracedPolicy = step.look;
  charts.forgetPrevious();
  run();
}

/** Run what a link describes, or show what is wrong with the link. */
async function openLink(link) {
  try {
    const { problems, link: canonical } = await call("POST", "/playground/check", { link });
    if (running) return; // a step of the tour was chosen meanwhile
    await form.fill(problems.length ? link : canonical);
    if (!problems.length) return await run();
    form.showProblems(problems);
    return setStatus("idle", "This link is not valid: see the messages beside the fields.");
  } catch (error) {
    return setStatus("failed", error.message);
  }
}

byId("tour-steps").append(...tour.map((step, i) =>
  h("li", {}, h("button", { type: "button", onclick: () => goToStep(i) }, h("b", {}, String(i + 1)), h("span", {}, step.title)))));
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run({ scroll: true });
});
byId("form").addEventListener("input", markOutdated);
byId("auto-run").addEventListener("change", () => byId("auto-run").checked && run());
byId("traced-policy").addEventListener("change", () => { tracedPolicy = Number(byId("traced-policy").value); });
byId("stop-button").addEventListener("click", () => running?.abort());
byId("copy").addEventListener("click", () =>
  copy(`${location.origin}/playground?${formats.link}`, byId("copy"), "Copy it from the address bar"));
byId("toml").addEventListener("click", () =>
  showText("This run as TOML", "Save it as a file for dynabandit run.", formats.toml, "playground.toml"));
byId("python").addEventListener("click", () =>
  showText("This run as Python", "This program computes exactly the same numbers.", formats.python, "playground.py"));
setInterval(showElapsed, 500);
new ResizeObserver(() => document.documentElement.style.setProperty("--run-bar", `${byId("run-bar").offsetHeight}px`)).observe(byId("run-bar"));
byId("text-close").addEventListener("click", () => byId("text-dialog").close());

openLink(location.search.slice(1) || INITIAL);
