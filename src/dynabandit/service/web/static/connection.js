// The light in the bar that says whether the page is live
import { byId } from "./dom.js";

const WORDS = { live: "Up to date", away: "The service is away. Trying again…" };

export function showConnection(state) {
  const place = byId("connection");
  const refused = typeof state !== "string";
  place.hidden = false;
  place.dataset.state = refused ? "refused" : state;
  const text = refused ? state.message : WORDS[state];
  if (place.textContent !== text) place.textContent = text;
  document.body.classList.toggle("stale", state !== "live");
}
