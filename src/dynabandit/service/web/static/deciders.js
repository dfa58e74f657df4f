// The table of the local deciders of a bandit. It is asked for every few seconds, because deciders may fall silent
import { call, url } from "./api.js";
import { byId, count, duration, h } from "./dom.js";

const ASK_MS = 3000;
const SILENT_SECONDS = 10; // a decider asks for the state once per second, unless it was set otherwise

const behind = (events) => (events <= 0 ? "current" : `${count(events)} event${events === 1 ? "" : "s"} behind`);

function row({ id, step, base, seen, waiting }, sequence) {
  const silent = seen === null || seen > SILENT_SECONDS;
  return h("tr", {},
    h("th", { scope: "row" }, h("code", {}, id)),
    h("td", { class: "number" }, count(step)),
    h("td", { class: "number" }, behind(sequence - base)),
    h("td", { class: "number" }, seen === null ? "over 10 minutes ago" : seen < 2 ? "now" : `${duration(seen)} ago`, " ",
      silent && h("span", { class: "badge warm" }, "silent")),
    h("td", { class: "number" }, waiting === null ? "–" : count(waiting)));
}

async function show(name) {
  const { deciders, sequence } = await call("GET", url("v1", "bandits", name));
  byId("deciders-section").hidden = deciders.length === 0;
  byId("deciders").replaceChildren(...deciders.map((one) => row(one, sequence)));
}

/** Show the deciders of a bandit now and every few seconds, as long as it exists; without an answer the table stays. */
export async function followDeciders(name) {
  try {
    await show(name);
  } catch (error) {
    if (error.status === 404) return;
  }
  setTimeout(() => followDeciders(name), ASK_MS);
}
