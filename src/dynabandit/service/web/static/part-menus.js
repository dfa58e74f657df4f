// The menus of a policy that is made of parts, in the forms of the playground and of the live pages
import { h } from "./dom.js";

const NONE = { name: "", text: "" };
const ROLES = ["memory", "rule", "detector"];

/**
 * A menu for each role. `menus` are the parts that there are, and `chosen` the names of those of the policy. After a
 * change, `onChange` gets the name of the composition that the menus describe, and the id of the menu.
 */
export function partMenus(prefix, menus, chosen, hasFeatures, onChange) {
  const selects = Object.fromEntries(ROLES.map((role) => {
    const id = `${prefix}-${role}`;
    const parts = role === "detector" ? [{ ...NONE, label: "none" }, ...menus[role]] : menus[role];
    const select = h("select", { id, onchange: (event) => {
      event.stopPropagation(); // the form changes when the policy is known
      onChange(composition(selects), id);
    } }, parts.map(({ name, label, text, contextual }) =>
      h("option", { value: name, title: text, disabled: contextual && !hasFeatures }, label ?? name)));
    select.value = chosen[role];
    return [role, select];
  }));
  return h("div", { class: "parts" }, ROLES.map((role) =>
    h("div", {}, h("label", { for: selects[role].id }, role[0].toUpperCase() + role.slice(1)), selects[role])));
}

function composition({ memory, rule, detector }) {
  return [rule, memory, detector].map(({ value }) => value).filter(Boolean).join(" + ");
}
