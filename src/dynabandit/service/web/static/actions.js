// What an operator can do to a bandit: add, retire, swap, export, delete
import { at, call, download } from "./api.js";
import { byId, count, fieldProblem, h, percent } from "./dom.js";
import { onSubmit, open, placeProblem, PolicyFields } from "./forms.js";

/** Ask before an arm is retired for good. */
export function askRetire(arm) {
  byId("retire-name").textContent = arm;
  byId("retire-form").dataset.arm = arm;
  open(byId("retire-dialog"));
}

function previewTable(found) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Preview" }, h("table", {},
    h("caption", {}, `After the ${count(found.rewards)} rewards so far, ${found.policy} would choose:`),
    h("thead", {}, h("tr", {},
      h("th", { scope: "col" }, "Arm"), h("th", { scope: "col", class: "number" }, `Chance with ${found.current_policy}, now`),
      h("th", { scope: "col", class: "number" }, `Chance with ${found.policy}`), h("th", { scope: "col", class: "number" }, "Mean it would believe"))),
    h("tbody", {}, found.arms.slice(0, 50).map((arm) => h("tr", {},
      h("th", { scope: "row" }, arm.arm, arm.paused && " (paused)"), h("td", { class: "number" }, percent(arm.current_propensity)),
      h("td", { class: "number" }, percent(arm.propensity)), h("td", { class: "number" }, percent(arm.mean)))))));
}

function prepareExport(name) {
  byId("export-button").onclick = () => open(byId("export-dialog"));
  onSubmit(byId("export-form"), async () => {
    const what = byId("export-form").elements.what.value;
    if (what === "events") await download(`${at("v1", "bandits", name, "events")}?format=ndjson`, `${name}-events.ndjson`);
    else if (what === "decisions") await download(`${at("v1", "bandits", name, "export")}?format=ndjson`, `${name}-decisions.ndjson`);
    else await download(`${at("v1", "bandits", name, "export")}?format=parquet`, `${name}-decisions.parquet`);
    byId("export-dialog").close();
  }, (error) => { byId("export-problem").textContent = error.message; });
}

function prepareArms(name) {
  byId("add-button").onclick = () => open(byId("add-dialog"));
  onSubmit(byId("add-form"), async () => {
    await call("POST", at("v1", "bandits", name, "arms"), { arm: byId("add-arm").value });
    byId("add-arm").value = "";
    byId("add-dialog").close();
  }, (error) => fieldProblem(byId("add-arm"), error.message));
  onSubmit(byId("retire-form"), async () => {
    await call("PATCH", at("v1", "bandits", name, "arms", byId("retire-form").dataset.arm), { retired: true });
    byId("retire-dialog").close();
  }, (error) => { byId("retire-problem").textContent = error.message; });
}

function prepareDelete(name) {
  byId("delete-button").onclick = () => open(byId("delete-dialog"));
  onSubmit(byId("delete-form"), async () => {
    const query = new URLSearchParams({ confirm: byId("delete-confirm").value, erase: byId("delete-erase").checked });
    await call("DELETE", `${at("v1", "bandits", name)}?${query}`);
    location.href = "/";
  }, (error) => fieldProblem(byId("delete-confirm"), error.message));
}

async function prepareSwap(name, viewed) {
  const { policies } = await call("GET", "/pages/policies");
  const fields = new PolicyFields(byId("swap-policy-place"), "swap", policies, viewed()?.policy ?? "aff-ots");
  byId("swap-button").onclick = () => {
    byId("preview").replaceChildren();
    open(byId("swap-dialog"));
  };
  byId("preview-button").onclick = async () => {
    for (const place of byId("swap-form").querySelectorAll(".problem")) place.textContent = "";
    byId("preview").replaceChildren(h("p", { class: "soft" }, "Replaying the rewards…"));
    try {
      const draws = Math.max(1, Math.min(1000, Math.floor(1e7 / (viewed()?.arm_count ?? 1)))); // the service draws no more
      const found = await call("POST", at("v1", "bandits", name, "policy", "preview"), { ...fields.values(), draws });
      byId("preview").replaceChildren(previewTable(found));
    } catch (error) {
      byId("preview").replaceChildren();
      placeProblem("swap", error);
    }
  };
  onSubmit(byId("swap-form"), async () => {
    await call("PUT", at("v1", "bandits", name, "policy"), fields.values());
    byId("swap-dialog").close();
  }, (error) => placeProblem("swap", error));
}

/**
 * Make the buttons of the page work, as far as the key allows; returns whether arms may be changed. `viewed` returns what
 * the page shows now.
 */
export async function prepareActions(name, viewed) {
  const { role } = await call("GET", "/pages/who");
  const admin = role === "admin";
  byId("actions").hidden = false;
  for (const id of ["add-button", "swap-button", "delete-button"]) byId(id).hidden = !admin;
  prepareExport(name);
  if (!admin) return false;
  prepareArms(name);
  prepareDelete(name);
  prepareSwap(name, viewed).catch(() => {});
  return true;
}
