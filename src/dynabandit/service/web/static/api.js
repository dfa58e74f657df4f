// Calls of the service and streams of server-sent events; both send the API key where the service requires one
import { save } from "./dom.js";

const KEY = "dynabandit-key";
const SILENCE_MS = 1000 * Number(document.documentElement.dataset.silence); // after which a stream is taken for broken
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 5000;

/** A failed call; `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

/** The path of a resource: `url("v1", "bandits", name)`. */
export function url(...parts) {
  return "/" + parts.map(encodeURIComponent).join("/");
}

let keyRequest = null;

/** Ask for a key and return whether one was entered; simultaneous callers share one dialog. */
export function askForKey(message = "") {
  keyRequest ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    const field = document.getElementById("key-field");
    let entered = false;
    document.getElementById("key-problem").textContent = message;
    document.getElementById("key-form").onsubmit = () => {
      entered = field.value.trim() !== "";
      if (entered) sessionStorage.setItem(KEY, field.value.trim());
      field.value = "";
    };
    dialog.onclose = () => {
      keyRequest = null;
      resolve(entered);
    };
    dialog.showModal();
  });
  return keyRequest;
}

async function send(path, options) {
  const key = sessionStorage.getItem(KEY);
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The service cannot be reached.");
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && document.getElementById("key-dialog")) {
    const isReplaced = sessionStorage.getItem(KEY) !== key; // while this call was under way
    if (isReplaced || (await askForKey(key ? "This key is not valid." : ""))) return send(path, options);
  }
  throw await readError(answer);
}

async function readError(answer) {
  const text = await answer.text();
  try {
    return new ApiError(answer.status, JSON.parse(text).problem);
  } catch {
    return new ApiError(answer.status, text || `The service answered with status ${answer.status}.`);
  }
}

/** Make a call and return the decoded answer. */
export async function call(method, path, body, signal) {
  const options = { method, signal };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  return (await send(path, options)).json();
}

/** Fetch a file with the key and offer it as a download. */
export async function download(path, name) {
  save(await (await send(path, { method: "GET" })).blob(), name);
}

/** Read server-sent events until the stream ends; calls `onEvent(event, data)`, and `onData` for each chunk. */
async function readEvents(answer, onEvent, onData = () => {}) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onData();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (fields.data !== undefined) onEvent(fields.event ?? "message", JSON.parse(fields.data));
    }
  }
}

/** POST a body and read the answer as server-sent events. */
export async function postStream(path, body, onEvent, signal) {
  const options = { method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  await readEvents(await send(path, options), onEvent);
}

/**
 * Read a stream as long as the page is open, and connect again when it ends, with growing delays. Calls
 * `onEvent(event, data)`, and `onState` with "live", "unreachable", or an ApiError after which it stops. `end` is a signal
 * that ends it.
 */
export async function follow(path, onEvent, onState, end = new AbortController().signal) {
  let delay = FIRST_RETRY_MS;
  let retryNow = () => {};

  async function readOnce() {
    const controller = new AbortController();
    let watchdog = 0;
    const restartWatchdog = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(), SILENCE_MS);
    };
    try {
      restartWatchdog();
      const answer = await send(path, { method: "GET", signal: AbortSignal.any([controller.signal, end]) });
      onState("live");
      delay = FIRST_RETRY_MS;
      await readEvents(answer, onEvent, restartWatchdog);
    } finally {
      clearTimeout(watchdog);
    }
  }

  addEventListener("online", () => retryNow(), { signal: end });
  document.addEventListener("visibilitychange", () => document.hidden || retryNow(), { signal: end });
  while (!end.aborted) {
    try {
      await readOnce();
    } catch (error) {
      if (end.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        onState(error);
        return;
      }
      onState("unreachable");
    }
    await new Promise((resolve) => {
      retryNow = resolve;
      setTimeout(resolve, delay);
    });
    delay = Math.min(delay * 2, LONGEST_RETRY_MS);
  }
}
