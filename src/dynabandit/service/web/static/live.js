// All bandits at a glance
import { at, call, follow } from "./api.js";
import { showConnection } from "./connection.js";
import { byId, copy, count, h, percent } from "./dom.js";
import { onSubmit, open, parsed, placeProblem, PolicyFields } from "./forms.js";

const SVG = "http://www.w3.org/2000/svg";
const cards = new Map();

/** The reward rate over time as a small line. */
function spark(values) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("class", "spark");
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

/** A forgetting factor as the number of rewards that it lets count. */
function memory(forgetting) {
  return forgetting < 0.9999 ? `${count(Math.round(1 / (1 - forgetting)))} rewards` : "everything";
}

function leader(one) {
  if (one.leader === null) return h("p", { class: "soft" }, "No decision yet.");
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * one.leader_share}%`;
  return h("div", { class: "leader" },
    h("p", {}, h("strong", {}, one.leader), h("span", { class: "soft" }, ` leads with ${percent(one.leader_share)}`)),
    h("span", { class: "track", "aria-hidden": "true" }, bar));
}

function card(one) {
  const reading = one.latest - one.sequence > 2000;
  return h("article", { class: "card bandit", "data-name": one.name },
    h("div", { class: "head" },
      h("h2", {}, h("a", { href: at("bandits", one.name) }, one.name)),
      h("span", { class: "badge" }, one.policy),
      one.change && h("span", { class: "badge warm" }, "The world has changed")),
    one.change && h("p", { class: "small warm-text" },
      `“${one.change.arm}” went from ${percent(one.change.before)} to ${percent(one.change.after)}.`),
    leader(one),
    one.decisions > 0 && h("p", { class: "soft small over" }, "reward rate over time"),
    one.decisions > 0 && spark(one.spark),
    h("dl", { class: "facts" },
      fact("decisions", count(one.decisions)),
      fact("reward rate", percent(one.rate)),
      fact("lately", percent(one.recent_rate)),
      fact("pending", count(one.pending)),
      one.expired > 0 && fact("expired", count(one.expired)),
      one.forgetting !== null && fact("memory", memory(one.forgetting))),
    reading && h("p", { class: "soft small" }, `Reading its log: ${percent(one.sequence / one.latest, 0)}`));
}

function show({ bandits, broken, more }) {
  const place = byId("all");
  place.setAttribute("aria-busy", "false");
  byId("empty").hidden = bandits.length + broken.length > 0;
  byId("more").hidden = !more;
  const there = new Set();
  for (const one of bandits) {
    const text = JSON.stringify(one);
    const before = cards.get(one.name);
    there.add(one.name);
    if (before?.text === text) continue;
    const made = card(one);
    if (before) {
      const focused = before.element.contains(document.activeElement);
      before.element.replaceWith(made);
      if (focused) made.querySelector("a").focus();
    }
    cards.set(one.name, { text, element: made });
  }
  for (const name of broken) {
    there.add(name);
    if (!cards.has(name)) {
      cards.set(name, { text: "", element: h("article", { class: "card bandit" }, h("h2", {}, name),
        h("p", { class: "notice bad" }, "Its log cannot be read. dynabandit verify says more.")) });
    }
  }
  for (const name of cards.keys()) if (!there.has(name)) cards.delete(name);
  const wanted = [...cards].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { element }]) => element);
  if (wanted.length !== place.children.length || wanted.some((element, i) => place.children[i] !== element)) {
    place.replaceChildren(...wanted);
  }
}

async function prepareForm() {
  const { role } = await call("GET", "/pages/who");
  if (role !== "admin") return;
  const { policies } = await call("GET", "/pages/policies");
  const fields = new PolicyFields(byId("create-policy-place"), "create", policies, "aff-ots");
  const form = byId("create-form");
  for (const id of ["create-button", "create-hint"]) byId(id).hidden = false;
  byId("create-none").hidden = true;
  byId("create-button").addEventListener("click", () => open(byId("create-dialog")));
  onSubmit(form, async () => {
    const name = byId("create-name").value;
    const arms = byId("create-arms").value.split("\n").map((arm) => arm.trim()).filter(Boolean);
    const body = { ...fields.values(), arms };
    for (const key of ["reward_window", "default_reward", "seed"]) {
      const value = parsed(byId(`create-${key}`).value);
      if (value !== null) body[key] = value;
    }
    if (!name) throw new Error("name must have 1 to 200 characters, got 0");
    await call("PUT", at("v1", "bandits", name), body);
    location.href = at("bandits", name);
  }, (error) => placeProblem("create", error));
}

for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(byId(button.dataset.copy).textContent, button));
}
follow(() => "/pages/bandits", (event, view) => show(view), showConnection);
prepareForm().catch(() => {});
