// The overview page: one card per bandit, and the form that creates a bandit
import { call, follow, url } from "./api.js";
import { showConnection } from "./connection.js";
import { byId, copy, count, h, meanReward, percent } from "./dom.js";
import { onSubmit, open, parseObject, parseValue, PolicyFields, showProblem } from "./forms.js";

const SVG = "http://www.w3.org/2000/svg";
const MANY_UNREAD = 2000; // events, from which a card says that the log is still being read
const cards = new Map(); // bandit name -> { content, element }

/** A small chart of the reward rate over time. */
function sparkline(values) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("class", "sparkline");
  drawing.setAttribute("viewBox", "0 0 100 28");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (known.length > 1) {
    const top = Math.max(...known.map(([, value]) => value)) || 1;
    const path = document.createElementNS(SVG, "polyline");
    path.setAttribute("points", known.map(([i, value]) =>
      `${((100 * i) / (values.length - 1)).toFixed(2)},${(26 - (24 * value) / top).toFixed(2)}`).join(" "));
    drawing.append(path);
  }
  return drawing;
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
    one.decisions > 0 && h("p", { class: "soft small" }, one.bounded ? "reward rate over time" : "mean reward over time"),
    one.decisions > 0 && sparkline(one.sparkline),
    h("dl", { class: "facts" },
      fact("decisions", count(one.decisions)),
      fact(one.bounded ? "reward rate" : "mean reward", meanReward(one.rate, one.bounded)),
      one.decisions > 0 && fact(`last ${count(one.recent_decisions)} decisions`, meanReward(one.recent_rate, one.bounded)),
      fact("no reward yet", count(one.pending)),
      one.expired > 0 && fact("expired", count(one.expired)),
      one.forgetting !== null && fact("memory", memory(one.forgetting))),
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
  cards.set(one.name, { content, element });
}

function unreadableCard(name) {
  return h("article", { class: "card bandit" }, h("h2", {}, name),
    h("p", { class: "notice bad" }, "The log of this bandit cannot be read. Run dynabandit verify for details."));
}

function show({ bandits, unreadable, more }) {
  const container = byId("all");
  container.setAttribute("aria-busy", "false");
  byId("empty").hidden = bandits.length + unreadable.length > 0;
  byId("more").hidden = !more;
  for (const one of bandits) updateCard(one);
  for (const name of unreadable) if (!cards.has(name)) cards.set(name, { content: "", element: unreadableCard(name) });
  const names = new Set([...bandits.map((one) => one.name), ...unreadable]);
  for (const name of cards.keys()) if (!names.has(name)) cards.delete(name);
  const elements = [...cards].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { element }]) => element);
  if (elements.length !== container.children.length || elements.some((element, i) => container.children[i] !== element)) {
    container.replaceChildren(...elements);
  }
}

async function setUpForm() {
  const { role } = await call("GET", "/pages/who");
  if (role !== "admin") return;
  const { policies, recommended, with_features: more } = await call("GET", "/pages/policies");
  let fields = new PolicyFields(byId("create-policy-fields"), "create", policies, recommended);
  let hasFeatures = false;
  byId("create-features").addEventListener("input", ({ target }) => {
    if (hasFeatures === (target.value.trim() !== "")) return;
    hasFeatures = !hasFeatures;
    const [all, selected] = hasFeatures ? [[...more.policies, ...policies], more.recommended] : [policies, recommended];
    fields = new PolicyFields(byId("create-policy-fields"), "create", all, selected);
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
    await call("PUT", url("v1", "bandits", name), body);
    location.href = url("bandits", name);
  }, (error) => showProblem("create", error));
}

for (const element of document.querySelectorAll("[data-origin]")) element.textContent = location.origin;
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(byId(button.dataset.copy).textContent, button));
}
follow("/pages/bandits", (event, data) => show(data), showConnection);
setUpForm().catch(() => {});
