// The form: what to run, with a slider for every number of a policy. The server alone says what is valid
import { byId, h } from "./dom.js";
import { look } from "./charts.js";

const WHOLE = ["arms", "horizon", "replications", "seed"];
const STEPS = 1000; // of a slider

/** A number as people write it: no trailing noise. */
function written(value, control) {
  if (control.whole) return String(Math.round(value));
  return String(control.logarithmic ? Number(value.toPrecision(2)) : Number(value.toFixed(3)));
}

function toSlider(value, { low, high, logarithmic }) {
  const held = Math.min(Math.max(value, low), high);
  const share = logarithmic ? Math.log(held / low) / Math.log(high / low) : (held - low) / (high - low);
  return Math.round(share * STEPS);
}

function fromSlider(place, { low, high, logarithmic }) {
  const share = place / STEPS;
  return logarithmic ? low * (high / low) ** share : low + (high - low) * share;
}

/** Nothing that would end a value of a link. */
const safe = (text) => String(text).replace(/[;,[\]]/g, " ").trim();

/** Cut `name:key=value,key=[1,2]` into its parts; whatever it holds, the server judges it. */
export function parsePolicy(text) {
  const [name, rest = ""] = text.split(/:(.*)/s);
  const parameters = {};
  for (const part of rest.split(/,(?![^[]*\])/)) {
    const [key, value] = part.split(/=(.*)/s);
    if (value !== undefined) parameters[key.trim()] = value.trim();
  }
  return { name, parameters };
}

export class Form {
  /** `changed` is called when something was changed for good, not while a slider moves. */
  constructor(catalogue, board, changed) {
    this.catalogue = catalogue;
    this.board = board;
    this.changed = changed;
    this.kinds = new Map(catalogue.policies.map((one) => [one.name, one]));
    this.policies = [];
    this.opened = new Set();
    byId("environment").append(...catalogue.environments.map((one) => h("option", { value: one.name }, one.title)));
    byId("environment").addEventListener("change", () => this.showWorld());
    byId("arms").addEventListener("change", () => this.showWorld());
    byId("add").addEventListener("click", () => this.add());
    byId("form").addEventListener("change", () => changed());
    document.documentElement.addEventListener("theme", () => this.render());
  }

  /** Fill in what comes after the question mark of a link. */
  fill(link) {
    const given = new URLSearchParams(link);
    for (const name of WHOLE) if (given.has(name)) byId(name).value = given.get(name);
    const environment = given.get("environment");
    if (environment !== null) {
      const select = byId("environment");
      select.value = environment;
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    }
    if (given.has("drawn")) this.board.decode(given.get("drawn"));
    const texts = (given.get("policies") ?? "").split(";").filter(Boolean);
    this.policies = texts.map(parsePolicy).filter((one) => this.kinds.has(one.name)).map((one) => this.policy(one));
    this.showWorld();
    this.render();
  }

  /** A policy with the value of each field: text, or a word in its place. */
  policy({ name, parameters }) {
    const values = {};
    for (const field of this.kinds.get(name).fields) {
      const given = parameters[field.name];
      const word = given === undefined ? field.default === null : field.word !== null && given === field.word;
      values[field.name] = { word, text: given !== undefined && !word ? given : this.usual(field) };
    }
    return { name, values };
  }

  usual(field) {
    if (Array.isArray(field.default)) return `[${field.default.join(",")}]`;
    if (field.default === null) return field.low === null ? "" : written(fromSlider(STEPS / 2, field), field);
    return String(field.default);
  }

  /** The link to what the form asks for. */
  link() {
    const value = (name) => `${name}=${encodeURIComponent(byId(name).value.trim())}`;
    const drawn = byId("environment").value === "drawn" ? `&drawn=${this.board.encode()}` : "";
    const policies = this.policies.map((one) => this.writtenPolicy(one)).join(";");
    return `v=${this.catalogue.version}&${value("environment")}&${value("arms")}${drawn}` +
      `&policies=${encodeURIComponent(policies)}&${["horizon", "replications", "seed"].map(value).join("&")}`;
  }

  writtenPolicy({ name, values }) {
    const parts = this.kinds.get(name).fields.flatMap((field) => {
      const { word, text } = values[field.name];
      if (word) return field.word === null ? [] : [`${field.name}=${field.word}`];
      const pair = field.kind === "pair";
      return [`${field.name}=${pair ? `[${text.replace(/[[\]]/g, "").split(",").map(safe).join(",")}]` : safe(text)}`];
    });
    return parts.length ? `${name}:${parts.join(",")}` : name;
  }

  showWorld() {
    const world = this.catalogue.environments.find((one) => one.name === byId("environment").value);
    byId("environment-hint").textContent = world.description;
    const arms = byId("arms");
    arms.readOnly = world.low === world.high;
    if (arms.readOnly) arms.value = world.low;
    byId("drawing").hidden = world.name !== "drawn";
    if (world.name !== "drawn") return;
    const wanted = Number(arms.value);
    if (Number.isInteger(wanted) && wanted >= world.low && wanted <= world.high) this.board.resize(wanted);
  }

  add() {
    const used = new Set(this.policies.map((one) => one.name));
    const free = this.catalogue.policies.find((one) => !used.has(one.name)) ?? this.catalogue.policies[0];
    this.policies.push(this.policy({ name: free.name, parameters: {} }));
    this.render();
    byId(`policies-${this.policies.length - 1}`).focus();
    this.changed();
  }

  remove(place) {
    this.policies.splice(place, 1);
    this.opened = new Set([...this.opened].filter((one) => one !== place).map((one) => (one > place ? one - 1 : one)));
    this.render();
    byId("add").focus();
    this.changed();
  }

  render() {
    byId("policies").replaceChildren(...this.policies.map((one, place) => this.card(one, place)));
    byId("add").disabled = this.policies.length >= this.catalogue.most_policies;
  }

  card(policy, place) {
    const id = `policies-${place}`;
    const kind = this.kinds.get(policy.name);
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = look(place).colour;
    const select = h("select", { id, "aria-label": `Policy ${place + 1}`, "aria-describedby": `${id}-hint ${id}-problem`,
      onchange: () => {
        this.policies[place] = this.policy({ name: select.value, parameters: {} });
        this.render();
        byId(id).focus();
      } }, this.catalogue.policies.map((one) => h("option", { value: one.name }, one.name)));
    select.value = policy.name;
    const changed = h("span", { class: "changed" });
    const tell = () => { changed.textContent = this.changes(policy); };
    const details = h("details", { open: this.opened.has(place), oninput: tell, onchange: tell },
      h("summary", {}, "Parameters", changed), kind.fields.map((field) => this.field(policy, field, place)));
    tell();
    details.addEventListener("toggle", () => this.opened[details.open ? "add" : "delete"](place));
    return h("fieldset", { class: "policy" }, h("legend", { class: "unseen" }, `Policy ${place + 1}`),
      h("div", { class: "row" }, swatch, select,
        h("button", { type: "button", class: "quiet small", "aria-label": `Take policy ${place + 1} away`,
          disabled: this.policies.length < 2, onclick: () => this.remove(place) }, "✕")),
      h("p", { class: "hint", id: `${id}-hint` }, kind.description),
      h("p", { class: "problem", id: `${id}-problem` }), details);
  }

  /** What differs from the defaults, such as `: memory 5`. */
  changes({ name, values }) {
    const told = this.kinds.get(name).fields.flatMap((field) => {
      const { word, text } = values[field.name];
      const usual = word ? field.default === null : field.default !== null && text === this.usual(field);
      return usual ? [] : [`${field.name.replaceAll("_", " ")} ${word ? field.word : text}`];
    });
    return told.length ? `: ${told.join(", ")}` : "";
  }

  field(policy, field, place) {
    const id = `policies-${place}-${field.name}`;
    const value = policy.values[field.name];
    const parts = this.inputs(id, field, value);
    const label = field.word_label || (field.default === null ? "choose it by itself" : "");
    if (label) {
      const box = h("input", { type: "checkbox", id: `${id}-word`, checked: value.word, onchange: () => {
        value.word = box.checked;
        for (const one of parts.querySelectorAll("input")) one.disabled = box.checked;
      } });
      for (const one of parts.querySelectorAll("input")) one.disabled = value.word;
      return this.framed(id, field, parts, h("label", { class: "check", for: `${id}-word` }, box, label));
    }
    return this.framed(id, field, parts);
  }

  framed(id, field, parts, more = null) {
    return h("div", { class: "field" }, h("label", { for: id }, field.name.replaceAll("_", " ")), parts, more,
      h("p", { class: "hint", id: `${id}-hint` }, field.explanation), h("p", { class: "problem", id: `${id}-problem` }));
  }

  inputs(id, field, value) {
    const described = { "aria-describedby": `${id}-hint ${id}-problem` };
    if (field.kind === "choice" || field.kind === "flag") {
      const choices = field.kind === "flag" ? ["false", "true"] : field.choices;
      const select = h("select", { id, ...described, onchange: () => { value.text = select.value; } },
        choices.map((one) => h("option", { value: one }, one)));
      select.value = value.text;
      return h("div", { class: "slide bare" }, select);
    }
    if (field.kind === "pair") return this.pair(id, field, value, described);
    const box = h("input", { id, type: "text", inputmode: "decimal", value: value.text, ...described });
    if (field.low === null) {
      box.addEventListener("input", () => { value.text = box.value; });
      return h("div", { class: "slide bare" }, box);
    }
    const name = `${field.name.replaceAll("_", " ")}, as a slider`;
    const slider = h("input", { type: "range", min: 0, max: STEPS, id: `${id}-slider`, "aria-label": name });
    const tell = () => {
      slider.value = Number.isFinite(Number(value.text)) ? toSlider(Number(value.text), field) : 0;
      slider.setAttribute("aria-valuetext", value.text);
    };
    box.addEventListener("input", () => { value.text = box.value; tell(); });
    slider.addEventListener("input", () => {
      value.text = box.value = written(fromSlider(Number(slider.value), field), field);
      slider.setAttribute("aria-valuetext", value.text);
    });
    tell();
    return h("div", { class: "slide" }, slider, box);
  }

  pair(id, field, value, described) {
    const texts = value.text.replace(/[[\]]/g, "").split(",").map((one) => one.trim());
    const boxes = [0, 1].map((i) => h("input", { id: i ? `${id}-second` : id, type: "text", inputmode: "decimal",
      value: texts[i] ?? "", "aria-label": `${field.name}, ${i ? "second" : "first"} number`, ...described }));
    for (const box of boxes) box.addEventListener("input", () => { value.text = boxes.map((one) => one.value).join(","); });
    return h("div", { class: "slide prior" }, boxes);
  }

  /** Show each problem beside its field, the others above the form; the first field gets the focus. */
  show(problems) {
    for (const place of document.querySelectorAll("#form .problem")) place.textContent = "";
    for (const field of document.querySelectorAll("#form [aria-invalid]")) field.removeAttribute("aria-invalid");
    const rest = [];
    for (const { field, problem } of problems) {
      const id = field.replaceAll(".", "-");
      const place = byId(`${id}-problem`);
      if (place === null || id === "form") {
        rest.push(`${field}: ${problem}`);
        continue;
      }
      place.textContent = problem;
      const input = byId(id);
      place.closest("details")?.setAttribute("open", "");
      if (input?.matches("input, select")) input.setAttribute("aria-invalid", "true");
    }
    byId("form-problem").textContent = rest.join(" ");
    document.querySelector("#form [aria-invalid]")?.focus();
  }
}
