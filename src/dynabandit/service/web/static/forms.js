// Forms in dialogs: opening and closing, fields for any policy, and the server's error messages beside the fields
import { call } from "./api.js";
import { byId, h, showFieldProblem } from "./dom.js";
import { partMenus } from "./part-menus.js";

/** Remove all error messages. */
export function clearProblems(form) {
  for (const message of form.querySelectorAll(".problem")) message.textContent = "";
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Open a dialog without earlier error messages; its buttons with `data-close` close it. */
export function open(dialog) {
  clearProblems(dialog);
  for (const button of dialog.querySelectorAll("[data-close]")) button.onclick = () => dialog.close();
  dialog.showModal();
}

/** Call `send` when a form is submitted, with the button disabled meanwhile; `onError` gets the error if it fails. */
export function onSubmit(form, send, onError) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearProblems(form);
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      await send();
    } catch (error) {
      onError(error);
    } finally {
      button.disabled = false;
    }
  });
}

/** Show an error beside the field that its message starts with, or else above the form; `prefix` is that of the ids. */
export function showProblem(prefix, error) {
  const message = error.message ?? String(error);
  const first = /^(?:an )?(\w+)/.exec(message)?.[1];
  const named = { name: "name", arm: "arms", arms: "arms", unknown: "policy", policy: "policy", parameters: "policy" }[first] ?? first;
  const field = [...document.querySelectorAll(`[id^="${prefix}-"]`)].find((one) =>
    "value" in one && (one.id === `${prefix}-${named}` || one.id === `${prefix}-parameter-${named}`));
  if (!field) {
    byId(`${prefix}-form-problem`).textContent = message;
    return;
  }
  const details = field.closest("details");
  if (details) details.open = true;
  showFieldProblem(field, message);
}

/**
 * A select box of policies with the description of the selected one, and a field for each of its parameters. `offered` is
 * what `/pages/policies` returned: where the operator allows compositions, there are menus of the parts of a policy.
 */
export class PolicyFields {
  constructor(container, prefix, offered, hasFeatures, selected) {
    this.prefix = prefix;
    this.hasFeatures = hasFeatures;
    this.menus = offered.parts;
    this.policies = hasFeatures ? [...offered.with_features.policies, ...offered.policies] : offered.policies;
    this.select = h("select", { id: `${prefix}-policy`, "aria-describedby": `${prefix}-policy-text ${prefix}-policy-problem` },
      this.policies.map(({ name }) => h("option", { value: name }, name)));
    const { recommended } = hasFeatures ? offered.with_features : offered;
    this.select.value = this.policies.some(({ name }) => name === selected) ? selected : recommended;
    this.text = h("p", { class: "hint", id: `${prefix}-policy-text` });
    this.parts = h("div", {});
    this.parameters = h("details", { class: "more" });
    this.select.addEventListener("change", () => this.show());
    container.replaceChildren(
      h("div", { class: "field" },
        h("label", { for: `${prefix}-policy` }, "Policy"), this.select, this.parts,
        h("p", { class: "problem", id: `${prefix}-policy-problem`, role: "alert" }), this.text),
      this.parameters);
    this.show();
    if (selected && this.select.value !== selected) this.compose(selected); // or a policy of another package
  }

  get policy() {
    return this.policies.find((one) => one.name === this.select.value);
  }

  /** Select a policy that may be a composition; `menu` is the id of the menu that was changed. */
  async compose(name, menu) {
    const { policy, problem } = await call("GET", `/pages/policy?name=${encodeURIComponent(name)}`);
    this.showProblem(problem ?? "");
    if (!policy) return;
    if (!this.policies.some((one) => one.name === policy.name)) {
      this.policies.unshift(policy);
      this.select.prepend(h("option", { value: policy.name }, policy.name));
    }
    this.select.value = policy.name;
    this.show();
    if (menu) byId(menu).focus();
  }

  /** Show why the parts in the menus do not fit; an empty text removes it. */
  showProblem(problem) {
    this.problem = problem;
    byId(`${this.prefix}-policy-problem`).textContent = problem;
  }

  show() {
    this.showProblem("");
    const { text, fields, parts } = this.policy;
    this.text.textContent = text.replace(/\s+/g, " ");
    this.parts.replaceChildren(...(this.menus && parts
      ? [partMenus(this.prefix, this.menus, parts, this.hasFeatures, (name, menu) => this.compose(name, menu))] : []));
    this.parameters.replaceChildren(
      h("summary", {}, "Parameters"),
      ...fields.map((field) => this.field(field)));
    this.parameters.hidden = fields.length === 0;
  }

  field({ name, default: value, description }) {
    const id = `${this.prefix}-parameter-${name}`;
    const shown = value === null ? "" : Array.isArray(value) ? value.join(", ") : String(value);
    const hint = description.replace(/`/g, "");
    return h("div", { class: "field" },
      h("label", { for: id }, name.replace(/_/g, " ")),
      h("input", { id, value: shown, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-hint ${id}-problem` }),
      h("p", { class: "hint", id: `${id}-hint` }, hint),
      h("p", { class: "problem", id: `${id}-problem`, role: "alert" }));
  }

  /** The policy and its parameters that differ from the defaults, as the API takes them. */
  values() {
    if (this.problem) throw new Error(`policy: ${this.problem}`);
    const parameters = {};
    for (const { name, default: value } of this.policy.fields) {
      const entered = parseValue(byId(`${this.prefix}-parameter-${name}`).value);
      if (JSON.stringify(entered) !== JSON.stringify(value)) parameters[name] = entered;
    }
    return { policy: this.policy.name, parameters };
  }
}

/** A number, a boolean, a list, or else the text itself; the server validates it. */
export function parseValue(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (trimmed.includes(",")) return trimmed.replace(/^[([]|[)\]]$/g, "").split(",").map((part) => parseValue(part));
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  const number = Number(trimmed);
  return Number.isNaN(number) ? trimmed : number;
}

/** An object in JSON; undefined if the text is empty. */
export function parseObject(text, field) {
  if (text.trim() === "") return undefined;
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch { /* the message below */ }
  throw new Error(`${field} must be an object in JSON, got ${text}`);
}
