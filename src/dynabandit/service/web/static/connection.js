// The indicator in the header that shows whether the page receives live data
import { byId } from "./dom.js";

const TEXTS = { live: "Up to date", unreachable: "The service cannot be reached. Trying again…" };

/** Show a state of `follow`: "live", "unreachable" or an ApiError. */
export function showConnection(state) {
  const indicator = byId("connection");
  const refused = typeof state !== "string";
  indicator.hidden = false;
  indicator.dataset.state = refused ? "refused" : state;
  const text = refused ? state.message : TEXTS[state];
  if (indicator.textContent !== text) indicator.textContent = text;
  document.body.classList.toggle("stale", state !== "live");
}
