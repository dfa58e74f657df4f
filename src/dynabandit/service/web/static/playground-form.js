// The form of the playground, with a slider for each numeric parameter of a policy. Only the server validates it
import { call } from "./api.js";
import { policyColour } from "./charts.js";
import { byId, h } from "./dom.js";
import { clearProblems } from "./forms.js";
import { partMenus } from "./part-menus.js";

const INTEGER_FIELDS = ["arms", "horizon", "replications", "seed"];

/** The index of the step of a slider that is nearest to a value. */
function nearestStep(steps, value) {
  const distances = steps.map((step) => Math.abs(step - value));
  return distances.indexOf(Math.min(...distances));
}

/** Remove characters that would end a value in a link. */
const withoutSeparators = (text) => String(text).replace(/[;,[\]]/g, " ").trim();

/** Split `name:key=value,key=[1,2]` into name and parameters; a composition is written `rule+memory+detector`. */
function parsePolicy(text) {
  const [written, rest = ""] = text.split(/:(.*)/s);
  const name = written.split("+").map((part) => part.trim()).join(" + ");
  const parameters = {};
  for (const part of rest.split(/,(?![^[]*\])/)) {
    const [key, value] = part.split(/=(.*)/s);
    if (value !== undefined) parameters[key.trim()] = value.trim();
  }
  return { name, parameters };
}

/** The parts that the menus of a policy show. */
function chosenParts(id) {
  return Object.fromEntries(["memory", "rule", "detector"].map((role) => [role, byId(`${id}-${role}`).value]));
}

export class Form {
  /** `onChange` is called after each change, but not while a slider moves. */
  constructor(catalogue, drawing, onChange) {
    this.catalogue = catalogue;
    this.drawing = drawing;
    this.onChange = onChange;
    this.policyTypes = new Map(catalogue.policies.map((one) => [one.name, one]));
    this.policies = [];
    this.openDetails = new Set(); // indices of policies whose parameters are shown
    byId("environment").append(...catalogue.environments.map((one) => h("option", { value: one.name }, one.title)));
    byId("environment").addEventListener("change", () => {
      this.showEnvironment();
      this.render(); // policies that decide by features need an environment with features
    });
    byId("arms").addEventListener("change", () => this.showEnvironment());
    byId("add-policy").addEventListener("click", () => this.add());
    byId("form").addEventListener("change", () => onChange());
    document.documentElement.addEventListener("theme", () => this.render());
  }

  /** Fill in the form from the query string of a link, in which parameters come after the whole name of a policy. */
  async fill(link) {
    const given = new URLSearchParams(link);
    for (const name of INTEGER_FIELDS) if (given.has(name)) byId(name).value = given.get(name);
    const environment = given.get("environment");
    if (environment !== null) {
      const select = byId("environment");
      select.value = environment;
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    }
    if (given.has("drawn")) this.drawing.decode(given.get("drawn"));
    const policies = (given.get("policies") ?? "").split(";").filter(Boolean).map(parsePolicy);
    await Promise.all(policies.filter(({ name }) => name.includes("+")).map(({ name }) => this.learn(name)));
    this.policies = policies.filter((one) => this.policyTypes.has(one.name)).map((one) => this.policy(one));
    this.showEnvironment();
    this.render();
  }

  /** Ask the service for a policy; returns its name, or the problem if its parts do not fit. */
  async learn(name) {
    const { policy, problem } = await call("GET", `/playground/policy?name=${encodeURIComponent(name)}`);
    if (policy) this.policyTypes.set(policy.name, policy);
    return { name: policy?.name, problem };
  }

  /** The state of a policy: for each field its text, and whether the special word replaces the number. */
  policy({ name, parameters }) {
    const values = {};
    for (const field of this.policyTypes.get(name).fields) {
      const given = parameters[field.name];
      const word = given === undefined ? field.default === null : field.word !== null && given === field.word;
      values[field.name] = { word, text: given !== undefined && !word ? given : this.defaultText(field) };
    }
    return { name, values };
  }

  defaultText(field) {
    if (Array.isArray(field.default)) return `[${field.default.join(",")}]`;
    return String(field.default ?? field.steps[Math.floor(field.steps.length / 2)] ?? "");
  }

  /** The query string of the run that the form describes. */
  link() {
    const value = (name) => `${name}=${encodeURIComponent(byId(name).value.trim())}`;
    const drawn = byId("environment").value === "drawn" ? `&drawn=${this.drawing.encode()}` : "";
    const policies = this.policies.map((one) => this.formatPolicy(one)).join(";");
    return `v=${this.catalogue.version}&${value("environment")}&${value("arms")}${drawn}` +
      `&policies=${encodeURIComponent(policies)}&${["horizon", "replications", "seed"].map(value).join("&")}`;
  }

  formatPolicy({ name, values }) {
    if (values === null) return name; // parts that do not fit: the service says why
    const parts = this.policyTypes.get(name).fields.flatMap((field) => {
      const { word, text } = values[field.name];
      if (word) return field.word === null ? [] : [`${field.name}=${field.word}`];
      const pair = field.kind === "pair";
      return [`${field.name}=${pair ? `[${text.replace(/[[\]]/g, "").split(",").map(withoutSeparators).join(",")}]` : withoutSeparators(text)}`];
    });
    return parts.length ? `${name}:${parts.join(",")}` : name;
  }

  environment() {
    return this.catalogue.environments.find((one) => one.name === byId("environment").value);
  }

  /** Adapt the form to the selected environment. */
  showEnvironment() {
    const { name, description, low, high } = this.environment();
    byId("environment-hint").textContent = description;
    const arms = byId("arms");
    arms.readOnly = low === high;
    if (arms.readOnly) arms.value = low;
    byId("drawing").hidden = name !== "drawn";
    if (name !== "drawn") return;
    const count = Number(arms.value);
    if (Number.isInteger(count) && count >= low && count <= high) this.drawing.resize(count);
  }

  add() {
    const used = new Set(this.policies.map((one) => one.name));
    const free = this.catalogue.policies.find((one) => !used.has(one.name) && !one.contextual) ?? this.catalogue.policies[0];
    this.policies.push(this.policy({ name: free.name, parameters: {} }));
    this.render();
    byId(`policies-${this.policies.length - 1}`).focus();
    this.onChange();
  }

  /** Take the policy that is made of some parts, with the parameters that were changed. */
  async compose(index, name, menu) {
    const parameters = Object.fromEntries(this.changed(this.policies[index]));
    const mine = { name, values: null, parts: chosenParts(`policies-${index}`) };
    this.policies[index] = mine;
    const known = await this.learn(name);
    if (this.policies[index] !== mine) return; // another part was chosen meanwhile
    if (known.name) this.policies[index] = this.policy({ name: known.name, parameters });
    this.render();
    if (known.problem) this.showProblems([{ field: `policies.${index}`, problem: known.problem }]);
    byId(menu).focus();
    this.onChange();
  }

  remove(index) {
    this.policies.splice(index, 1);
    this.openDetails = new Set([...this.openDetails].filter((one) => one !== index).map((one) => (one > index ? one - 1 : one)));
    this.render();
    byId("add-policy").focus();
    this.onChange();
  }

  render() {
    byId("policies").replaceChildren(...this.policies.map((one, index) => this.card(one, index)));
    byId("add-policy").disabled = this.policies.length >= this.catalogue.most_policies;
  }

  card(policy, index) {
    const id = `policies-${index}`;
    const type = this.policyTypes.get(policy.name) ?? { description: "", fields: [], parts: policy.parts };
    const { contextual: hasFeatures } = this.environment();
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = policyColour(index);
    const listed = this.catalogue.policies.some((one) => one.name === policy.name);
    const select = h("select", { id, "aria-label": `Policy ${index + 1}`, "aria-describedby": `${id}-hint ${id}-problem`,
      onchange: () => {
        this.policies[index] = this.policy({ name: select.value, parameters: {} });
        this.render();
        byId(id).focus();
      } },
      listed ? null : h("option", { value: policy.name }, policy.name),
      this.catalogue.policies.map((one) => h("option", { value: one.name, disabled: one.contextual && !hasFeatures }, one.name)));
    select.value = policy.name;
    const changes = h("span", { class: "changes" });
    const showChanges = () => { changes.textContent = this.changes(policy); };
    const details = h("details", { open: this.openDetails.has(index), oninput: showChanges, onchange: showChanges },
      h("summary", {}, "Parameters", changes), type.fields.map((field) => this.field(policy, field, index)));
    showChanges();
    details.addEventListener("toggle", () => this.openDetails[details.open ? "add" : "delete"](index));
    return h("fieldset", { class: "policy" }, h("legend", { class: "unseen" }, `Policy ${index + 1}`),
      h("div", { class: "row" }, swatch, select,
        h("button", { type: "button", class: "quiet small", "aria-label": `Remove policy ${index + 1}`,
          disabled: this.policies.length < 2, onclick: () => this.remove(index) }, "✕")),
      type.parts && partMenus(id, this.catalogue.parts, type.parts, hasFeatures, (name, menu) => this.compose(index, name, menu)),
      h("p", { class: "problem", id: `${id}-problem` }),
      h("p", { class: "hint", id: `${id}-hint` }, type.description),
      type.fields.length > 0 && details);
  }

  /** The parameters that differ from their defaults, each with its text. */
  changed({ name, values }) {
    return (this.policyTypes.get(name)?.fields ?? []).flatMap((field) => {
      const { word, text } = values[field.name];
      const isDefault = word ? field.default === null : field.default !== null && text === this.defaultText(field);
      return isDefault ? [] : [[field.name, word ? field.word : text]];
    });
  }

  /** The parameters that differ from their defaults, such as `: memory 5`. */
  changes(policy) {
    const changed = this.changed(policy).map(([name, text]) => `${name.replaceAll("_", " ")} ${text}`);
    return changed.length ? `: ${changed.join(", ")}` : "";
  }

  field(policy, field, index) {
    const id = `policies-${index}-${field.name}`;
    const value = policy.values[field.name];
    const parts = this.inputs(id, field, value);
    const label = field.word_label || (field.default === null ? "choose it automatically" : "");
    if (label) {
      const box = h("input", { type: "checkbox", id: `${id}-word`, checked: value.word, onchange: () => {
        value.word = box.checked;
        for (const one of parts.querySelectorAll("input")) one.disabled = box.checked;
      } });
      for (const one of parts.querySelectorAll("input")) one.disabled = value.word;
      return this.labelled(id, field, parts, h("label", { class: "check", for: `${id}-word` }, box, label));
    }
    return this.labelled(id, field, parts);
  }

  labelled(id, field, parts, more = null) {
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
    if (!field.steps.length) {
      box.addEventListener("input", () => { value.text = box.value; });
      return h("div", { class: "slide bare" }, box);
    }
    const name = `${field.name.replaceAll("_", " ")}, as a slider`;
    const slider = h("input", { type: "range", min: 0, max: field.steps.length - 1, id: `${id}-slider`, "aria-label": name });
    // The slider moves in steps, but a value between two of them, from a link or typed, is kept as it is
    const moveSlider = () => {
      slider.value = Math.max(nearestStep(field.steps, Number(value.text)), 0);
      slider.setAttribute("aria-valuetext", value.text);
    };
    box.addEventListener("input", () => { value.text = box.value; moveSlider(); });
    slider.addEventListener("input", () => {
      value.text = box.value = String(field.steps[slider.value]);
      slider.setAttribute("aria-valuetext", value.text);
    });
    moveSlider();
    return h("div", { class: "slide" }, slider, box);
  }

  pair(id, field, value, described) {
    const texts = value.text.replace(/[[\]]/g, "").split(",").map((one) => one.trim());
    const boxes = [0, 1].map((i) => h("input", { id: i ? `${id}-second` : id, type: "text", inputmode: "decimal",
      value: texts[i] ?? "", "aria-label": `${field.name}, ${i ? "second" : "first"} number`, ...described }));
    for (const box of boxes) box.addEventListener("input", () => { value.text = boxes.map((one) => one.value).join(","); });
    return h("div", { class: "slide prior" }, boxes);
  }

  /** Show each problem beside its field, others above the form, and focus the first field with a problem. */
  showProblems(problems) {
    clearProblems(byId("form"));
    const rest = [];
    for (const { field, problem } of problems) {
      const id = field.replaceAll(".", "-");
      const message = byId(`${id}-problem`);
      if (message === null || id === "form") {
        rest.push(`${field}: ${problem}`);
        continue;
      }
      message.textContent = problem;
      const input = byId(id);
      message.closest("details")?.setAttribute("open", "");
      if (input?.matches("input, select")) input.setAttribute("aria-invalid", "true");
    }
    byId("form-problem").textContent = rest.join(" ");
    document.querySelector("#form [aria-invalid]")?.focus();
  }
}
