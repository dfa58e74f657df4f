// The overview page: one card per bandit, and the form that creates a bandit
import { call, follow, url } from "./api.js";
import { showConnection } from "./connection.js";
import { byId, clock, copy, count, h, meanReward, percent, unlessPressed } from "./dom.js";
import { arranged, onFilter, searched, showFound } from "./overview-list.js";
import { onSubmit, open, parseObject, parseValue, PolicyFields, showProblem } from "./forms.js";
import { whileWaiting } from "./waiting.js";

const SVG = "http://www.w3.org/2000/svg";
const MANY_UNREAD = 2000; // events, from which a card says that the log is still being read
const cards = new Map(); // bandit name -> { name, data, content, element }

/** A small chart of the reward rate, from the first to the last decision; points are pairs of a place and a rate. */
function sparkline(points) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("class", "sparkline");
  drawing.setAttribute("viewBox", "0 0 100 28");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  const known = points.filter(([, rate]) => rate !== null);
  if (known.length > 1) {
    const top = Math.max(...known.map(([, rate]) => rate)) || 1;
    const path = document.createElementNS(SVG, "polyline");
    path.setAttribute("points", known.map(([place, rate]) => `${(100 * place).toFixed(2)},${(26 - (24 * rate) / top).toFixed(2)}`).join(" "));
    drawing.append(path);
  }
  return drawing;
}

/** What the small chart shows; old decisions may have been removed from the log. */
function sparklineText({ bounded, decisions, sparkline: { decisions: shown } }) {
  return `${bounded ? "reward rate" : "mean reward"} over ${shown === decisions ? "all" : "the last"} ${count(shown)} decisions`;
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

/** The effective number of rewards that a forgetting factor keeps. */
function memory(forgetting) {
  return forgetting < 0.9999 ? `${count(Math.round(1 / (1 - forgetting)))} rewards` : "all rewards";
}

function leaderBar(one) {
  if (one.leader === null) return h("p", { class: "soft" }, "No decisions yet.");
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * one.leader_share}%`;
  return h("div", { class: "leader" },
    h("p", {}, h("strong", {}, one.leader), h("span", { class: "soft" }, ` has ${percent(one.leader_share)} of the last ${count(one.recent_decisions)} decisions`)),
    h("span", { class: "track", "aria-hidden": "true" }, bar));
}

function card(one) {
  const behind = one.last_sequence - one.sequence > MANY_UNREAD;
  return h("article", { class: "card bandit", "data-name": one.name },
    h("div", { class: "head" },
      h("h2", {}, h("a", { href: url("bandits", one.name) }, one.name)),
      h("span", { class: "badge" }, one.policy),
      one.features.length > 0 && h("span", { class: "badge", title: one.features.join(", ") }, "with context"),
      one.change && h("span", { class: "badge warm" }, "Change detected")),
    one.change && h("p", { class: "small warm-text" },
      `The mean reward of “${one.change.arm}” went from ${percent(one.change.before)} to ${percent(one.change.after)}.`),
    leaderBar(one),
    one.sparkline.decisions > 0 && h("p", { class: "soft small" }, sparklineText(one)),
    one.sparkline.decisions > 0 && sparkline(one.sparkline.points),
    h("dl", { class: "facts" },
      fact("decisions", count(one.decisions)),
      fact(one.bounded ? "reward rate" : "mean reward", meanReward(one.rate, one.bounded)),
      one.decisions > 0 && fact(`last ${count(one.recent_decisions)} decisions`, meanReward(one.recent_rate, one.bounded)),
      fact("no reward yet", count(one.pending)),
      one.expired > 0 && fact("expired", count(one.expired)),
      one.forgetting !== null && fact("memory", memory(one.forgetting)),
      fact("latest activity", clock(one.wall))),
    behind && h("p", { class: "soft small" }, `Reading the log: ${percent(one.sequence / one.last_sequence, 0)}`));
}

/** Create or replace the card of a bandit unless its content is the same as before. */
function updateCard(one) {
  const content = JSON.stringify(one);
  const before = cards.get(one.name);
  if (before?.content === content) return;
  const element = card(one);
  if (before) {
    const focused = before.element.contains(document.activeElement);
    before.element.replaceWith(element);
    if (focused) element.querySelector("a").focus();
  }
  cards.set(one.name, { name: one.name, data: one, content, element });
}

function unreadableCard(name) {
  return h("article", { class: "card bandit" }, h("h2", {}, name),
    h("p", { class: "notice bad" }, "The log of this bandit cannot be read. Run dynabandit verify for details."));
}

let hasMore = false; // bandits that are not listed

function show({ bandits, unreadable, more }) {
  hasMore = more;
  byId("all").setAttribute("aria-busy", "false");
  const isEmpty = bandits.length + unreadable.length === 0 && followed === "";
  byId("empty").hidden = !isEmpty;
  byId("filters").hidden = isEmpty;
  byId("more").hidden = !more;
  for (const one of bandits) updateCard(one);
  for (const name of unreadable) {
    if (!cards.has(name)) cards.set(name, { name, data: null, content: "", element: unreadableCard(name) });
  }
  const names = new Set([...bandits.map((one) => one.name), ...unreadable]);
  for (const name of cards.keys()) if (!names.has(name)) cards.delete(name);
  arrange();
  searchService();
}

/** Put the cards that are searched for in order; the focus stays where it is. */
function arrange() {
  const container = byId("all");
  const elements = arranged([...cards.values()]).map(({ element }) => element);
  showFound(elements.length);
  if (elements.length === container.children.length && elements.every((element, i) => container.children[i] === element)) return;
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  container.replaceChildren(...elements);
  focused?.focus({ preventScroll: true });
}

let followed = ""; // the search of the service; empty while all bandits are listed
let following = new AbortController();

/** Follow the bandits that the service finds; as long as it lists all of them, the page searches by itself. */
function followBandits() {
  following.abort();
  following = new AbortController();
  const query = followed === "" ? "" : `?${new URLSearchParams({ search: followed })}`;
  follow(`/pages/bandits${query}`, (event, data) => unlessPressed(() => show(data)), showConnection, following.signal);
}

/** Let the service search, if it has more bandits than the page. */
function searchService() {
  if (searched() === followed || (!hasMore && followed === "")) return;
  followed = searched();
  followBandits();
}

async function setUpForm() {
  const { role } = await call("GET", "/pages/who");
  if (role !== "admin") return;
  const offered = await call("GET", "/pages/policies");
  let fields = new PolicyFields(byId("create-policy-fields"), "create", offered, false);
  let hasFeatures = false;
  byId("create-features").addEventListener("input", ({ target }) => {
    if (hasFeatures === (target.value.trim() !== "")) return;
    hasFeatures = !hasFeatures;
    fields = new PolicyFields(byId("create-policy-fields"), "create", offered, hasFeatures);
  });
  const form = byId("create-form");
  for (const id of ["create-button", "create-hint"]) byId(id).hidden = false;
  byId("create-none").hidden = true;
  byId("create-button").addEventListener("click", () => open(byId("create-dialog")));
  onSubmit(form, async () => {
    const name = byId("create-name").value;
    const arms = byId("create-arms").value.split("\n").map((arm) => arm.trim()).filter(Boolean);
    const body = { ...fields.values(), arms };
    for (const key of ["reward_window", "default_reward", "seed", "sticky_for"]) {
      const value = parseValue(byId(`create-${key}`).value);
      if (value !== null) body[key] = value;
    }
    body.features = parseObject(byId("create-features").value, "features");
    const share = parseValue(byId("create-holdout").value);
    const control = byId("create-control").value.trim();
    if (share !== null) body.holdout = control ? { share, control } : { share };
    if (!name) throw new Error("name must have 1 to 200 characters, got 0");
    await whileWaiting("create-waiting", body.policy, () => call("PUT", url("v1", "bandits", name), body));
    location.href = url("bandits", name);
  }, (error) => showProblem("create", error));
}

for (const element of document.querySelectorAll("[data-origin]")) element.textContent = location.origin;
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(byId(button.dataset.copy).textContent, button));
}
followBandits();
onFilter(arrange, searchService);
setUpForm().catch(() => {});
