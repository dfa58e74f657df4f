// Calls of the service, and streams of server-sent events; both carry the key where the service asks for one
import { save } from "./dom.js";

const KEY = "dynabandit-key";
const QUIET_MS = 8000; // a stream that says nothing for so long is dead: the server says something every 2 s
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;

/** A call that was refused; `status` is 0 where no answer came. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

/** Address of something with a name in its path: `at("v1", "bandits", name)`. */
export function at(...parts) {
  return "/" + parts.map(encodeURIComponent).join("/");
}

let asking = null;

/** Ask for a key, and return whether one was given; callers that ask at the same time share the question. */
export function askForKey(why = "") {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    const field = document.getElementById("key-field");
    let given = false;
    document.getElementById("key-problem").textContent = why;
    document.getElementById("key-form").onsubmit = () => {
      given = field.value.trim() !== "";
      if (given) sessionStorage.setItem(KEY, field.value.trim());
      field.value = "";
    };
    dialog.onclose = () => {
      asking = null;
      resolve(given);
    };
    dialog.showModal();
  });
  return asking;
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer.");
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && document.getElementById("key-dialog")) {
    if (await askForKey(sessionStorage.getItem(KEY) ? "This key is not valid." : "")) return send(path, options);
  }
  throw await problem(answer);
}

async function problem(answer) {
  const text = await answer.text();
  try {
    return new Problem(answer.status, JSON.parse(text).problem);
  } catch {
    return new Problem(answer.status, text || `The service answered ${answer.status}.`);
  }
}

/** Make a call and return what it answers. */
export async function call(method, path, body, signal) {
  const options = { method, signal };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  return (await send(path, options)).json();
}

/** Fetch a file with the key and hand it to the person. */
export async function download(path, name) {
  save(await (await send(path, { method: "GET" })).blob(), name);
}

/** Read server-sent events until the stream ends; `seen` gets (event, data). */
export async function readEvents(answer, seen, alive = () => {}) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (fields.data !== undefined) seen(fields.event ?? "message", JSON.parse(fields.data));
    }
  }
}

/** POST a body and read the answer as server-sent events, once. */
export async function postStream(path, body, seen, signal) {
  const options = { method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  await readEvents(await send(path, options), seen);
}

/**
 * Follow a stream for as long as the page is open: when it ends it is asked for again, each time a little later.
 * `path` is a function, so that it can go on from where the page stands; `state` gets "live", "away" or a Problem.
 * Returns a function that stops.
 */
export function follow(path, seen, state) {
  let stopped = false;
  let wait = FIRST_WAIT_MS;
  let controller = null;
  let wake = () => {};

  async function once() {
    controller = new AbortController();
    let watchdog = 0;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(), QUIET_MS);
    };
    try {
      alive();
      const answer = await send(path(), { method: "GET", signal: controller.signal });
      state("live");
      wait = FIRST_WAIT_MS;
      await readEvents(answer, seen, alive);
    } finally {
      clearTimeout(watchdog);
    }
  }

  async function run() {
    while (!stopped) {
      try {
        await once();
      } catch (error) {
        if (stopped) return;
        if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
          state(error);
          return;
        }
        state("away");
      }
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, wait);
      });
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  addEventListener("online", () => wake());
  document.addEventListener("visibilitychange", () => document.hidden || wake());
  run();
  return () => {
    stopped = true;
    controller?.abort();
  };
}
