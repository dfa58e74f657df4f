// Forms in dialogs: opening and closing them, a form for any policy, and the server's words beside the field
import { byId, fieldProblem, h } from "./dom.js";

/** Take away what was said to be wrong. */
function clear(form) {
  for (const place of form.querySelectorAll(".problem")) place.textContent = "";
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Open a dialog without the problems of the last time; its buttons with `data-close` close it. */
export function open(dialog) {
  clear(dialog);
  for (const button of dialog.querySelectorAll("[data-close]")) button.onclick = () => dialog.close();
  dialog.showModal();
}

/** Send a form by `send`; while it is under way its buttons rest. `wrong` gets the problem where it is refused. */
export function onSubmit(form, send, wrong) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clear(form);
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      await send();
    } catch (error) {
      wrong(error);
    } finally {
      button.disabled = false;
    }
  });
}

/** Put a problem beside the field that it names, or above the form. `prefix` is that of the fields' ids. */
export function placeProblem(prefix, error) {
  const message = error.message ?? String(error);
  const path = /^(?:an )?(\w+)/.exec(message)?.[1];
  const named = { name: "name", arm: "arms", arms: "arms", unknown: "policy", policy: "policy", parameters: "policy" }[path] ?? path;
  const field = [...document.querySelectorAll(`[id^="${prefix}-"]`)].find((one) =>
    "value" in one && (one.id === `${prefix}-${named}` || one.id === `${prefix}-parameter-${named}`));
  if (!field) {
    byId(`${prefix}-form-problem`).textContent = message;
    return;
  }
  const around = field.closest("details");
  if (around) around.open = true;
  fieldProblem(field, message);
}

/** A choice of policies that explains each of them, and a field for each parameter. */
export class PolicyFields {
  constructor(place, prefix, policies, chosen) {
    this.prefix = prefix;
    this.policies = policies;
    this.select = h("select", { id: `${prefix}-policy`, "aria-describedby": `${prefix}-policy-text ${prefix}-policy-problem` },
      policies.map((one) => h("option", { value: one.name, selected: one.name === chosen }, one.name)));
    this.text = h("p", { class: "hint", id: `${prefix}-policy-text` });
    this.parameters = h("details", { class: "more" });
    this.select.addEventListener("change", () => this.show());
    place.replaceChildren(
      h("div", { class: "field" },
        h("label", { for: `${prefix}-policy` }, "Policy"), this.select, this.text,
        h("p", { class: "problem", id: `${prefix}-policy-problem`, role: "alert" })),
      this.parameters);
    this.show();
  }

  get policy() {
    return this.policies.find((one) => one.name === this.select.value);
  }

  show() {
    const { text, fields, needed } = this.policy;
    this.text.textContent = text.replace(/\s+/g, " ");
    this.parameters.replaceChildren(
      h("summary", {}, "Parameters"),
      ...fields.map((field) => this.field(field, needed.includes(field.name))));
    this.parameters.hidden = fields.length === 0;
    this.parameters.open = needed.length > 0;
  }

  field({ name, default: value, description }, needed) {
    const id = `${this.prefix}-parameter-${name}`;
    const shown = value === null ? "" : Array.isArray(value) ? value.join(", ") : String(value);
    const hint = `${description.replace(/`/g, "")}${needed ? " Needed here: nobody knows the future." : ""}`;
    return h("div", { class: "field" },
      h("label", { for: id }, name.replace(/_/g, " ")),
      h("input", { id, value: shown, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-hint ${id}-problem` }),
      h("p", { class: "hint", id: `${id}-hint` }, hint),
      h("p", { class: "problem", id: `${id}-problem`, role: "alert" }));
  }

  /** What the fields say, where it is not the default. */
  values() {
    const found = {};
    for (const { name, default: value } of this.policy.fields) {
      const given = parsed(byId(`${this.prefix}-parameter-${name}`).value);
      if (JSON.stringify(given) !== JSON.stringify(value)) found[name] = given;
    }
    return { policy: this.policy.name, parameters: found };
  }
}

/** A number, a list of numbers, or the text as it is; what it may be the server knows. */
export function parsed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (trimmed.includes(",")) return trimmed.replace(/^[([]|[)\]]$/g, "").split(",").map((part) => parsed(part));
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  const number = Number(trimmed);
  return Number.isNaN(number) ? trimmed : number;
}
