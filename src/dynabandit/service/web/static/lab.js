// The playground: form, run, charts, link, texts and tour
import { call, postStream } from "./api.js";
import { byId, copy, count, h, save } from "./dom.js";
import { Board } from "./lab-draw.js";
import { Form } from "./lab-form.js";
import { Screen } from "./lab-charts.js";

const FIRST = "environment=small-changes&arms=3&policies=ts;aff-ots&horizon=6000&replications=20&seed=1";
const results = byId("results");
const given = (id) => JSON.parse(byId(id).textContent);
const catalogue = given("catalogue");
const steps = given("steps");
const screen = new Screen();
const form = new Form(catalogue, new Board(byId("drawing"), catalogue), () => byId("again").checked && run());

let running = null; // the run under way: what aborts it
let texts = null; // the last run as link, TOML and Python
let wanted = null; // the policy to look into; the last one where nobody chose

function say(state, text) {
  results.dataset.state = state;
  byId("status").textContent = text;
  byId("stop-button").disabled = state !== "running";
  screen.say(state, text);
}

async function run({ scroll = false } = {}) {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  try {
    const checked = await call("POST", "/lab/check", { link: form.link() }, mine.signal);
    form.show(checked.problems);
    if (checked.problems.length) {
      say("idle", "Nothing was run: see the message beside the field.");
      return;
    }
    keep(checked);
    say("running", "Starting\u00a0…");
    if (scroll && results.getBoundingClientRect().top > innerHeight / 2) results.scrollIntoView({ block: "start" });
    byId("progress").removeAttribute("value");
    await watch(checked.link, mine.signal);
  } catch (error) {
    if (running !== mine) return;
    if (error.name === "AbortError") say("stopped", `Stopped. ${progress()}`);
    else say("failed", error.message);
  } finally {
    if (running === mine) {
      running = null;
      screen.playing = false;
      byId("progress").value = screen.run?.regret ? screen.run.regret.done / screen.run.regret.replications : 0;
    }
  }
}

async function watch(link, signal) {
  let playing = Promise.resolve();
  let last = null;
  await postStream("/lab/run", { link }, (_, message) => {
    if (signal.aborted) return;
    last = message;
    if (message.kind === "doing") say("running", `${message.text[0].toUpperCase()}${message.text.slice(1)}\u00a0…`);
    if (message.kind === "start") screen.start(message, wanted);
    if (message.kind === "path") {
      screen.path(message);
      playing = screen.play();
    }
    if (message.kind === "beliefs") screen.beliefs(message);
    if (message.kind === "regret") {
      screen.run.regret = message;
      say("running", progress());
      byId("progress").value = message.done / message.replications;
      screen.draw();
    }
  }, signal);
  await playing;
  if (signal.aborted) return;
  if (last?.kind === "end") say("done", `Done: ${progress()}`);
  else say("failed", last?.kind === "failed" ? `Not finished: ${last.text}.` : "The service went away before the end.");
}

function progress() {
  const regret = screen.run?.regret;
  return regret ? `${count(regret.done)} of ${count(regret.replications)} replications.` : "Nothing was drawn yet.";
}

/** Keep the other forms of a run, and its link in the address. */
function keep(checked) {
  texts = checked;
  history.replaceState(null, "", `/lab?${checked.link}`);
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

function goTo(place) {
  const step = steps[place];
  for (const [i, button] of [...byId("stops").querySelectorAll("button")].entries()) {
    if (i === place) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  byId("stop").hidden = false;
  byId("stop-title").textContent = `${place + 1}. ${step.title}`;
  byId("stop-text").replaceChildren(...step.text.map((one) => h("p", {}, one)));
  byId("next").hidden = place === steps.length - 1;
  byId("next").onclick = () => goTo(place + 1);
  form.fill(step.link);
  wanted = step.look;
  screen.forget();
  run();
}

byId("stops").append(...steps.map((step, i) =>
  h("li", {}, h("button", { type: "button", onclick: () => goTo(i) }, h("b", {}, String(i + 1)), h("span", {}, step.title)))));
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run({ scroll: true });
});
byId("look").addEventListener("change", () => { wanted = Number(byId("look").value); });
byId("stop-button").addEventListener("click", () => running?.abort());
byId("copy").addEventListener("click", () => 
  copy(`${location.origin}/lab?${texts.link}`, byId("copy"), "Copy it from the address bar"));
byId("toml").addEventListener("click", () =>
  showText("This run as TOML", "Save it and give it to dynabandit run.", texts.toml, "playground.toml"));
byId("python").addEventListener("click", () =>
  showText("This run as Python", "The same numbers, to the last digit.", texts.python, "playground.py"));
byId("text-close").addEventListener("click", () => byId("text-dialog").close());

const link = location.search.slice(1);
form.fill(link || FIRST);
if (link) open(link);

/** Run what a link asks for, or say what is wrong with the link itself. */
async function open(asked) {
  try {
    const { problems } = await call("POST", "/lab/check", { link: asked });
    if (!problems.length) return await run();
    form.show(problems);
    return say("idle", "This link cannot be run: see the messages beside the fields.");
  } catch (error) {
    return say("failed", error.message);
  }
}
