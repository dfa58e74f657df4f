// The actions on a bandit: add, limit and retire arms, change the policy, export the log, delete the bandit
import { call, download, url } from "./api.js";
import { byId, count, showFieldProblem, h, meanReward, percent } from "./dom.js";
import { clearProblems, onSubmit, open, parseObject, parseValue, PolicyFields, showProblem } from "./forms.js";
import { setUpShadow } from "./shadow.js";
import { setUpSnippets } from "./snippets.js";
import { whileWaiting } from "./waiting.js";

const MAX_DRAWS = 1e7; // times arms: the limit of the service

/** Ask for confirmation before an arm is retired. */
export function askRetire(arm) {
  byId("retire-name").textContent = arm;
  byId("retire-form").dataset.arm = arm;
  open(byId("retire-dialog"));
}

/** Let the limits of an arm be changed, then call `onClose`. */
export function askLimits({ arm, min_share: min, max_share: max }, onClose) {
  byId("limits-dialog").onclose = onClose;
  byId("limits-name").textContent = arm;
  byId("limits-form").dataset.arm = arm;
  byId("limits-min_share").value = min > 0 ? String(min) : "";
  byId("limits-max_share").value = max < 1 ? String(max) : "";
  open(byId("limits-dialog"));
}

function previewTable(preview, context) {
  const where = context === undefined ? "" : " in the context of the latest decision";
  const bounded = preview.arms.every((arm) => arm.mean === null || (arm.mean >= 0 && arm.mean <= 1));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Preview" }, h("table", {},
    h("caption", {}, `Probability of each choice${where} after the ${count(preview.rewards)} rewards so far, and the mean that ${preview.policy} estimates:`),
    h("thead", {}, h("tr", {},
      h("th", { scope: "col" }, "Arm"), h("th", { scope: "col", class: "number" }, `${preview.current_policy} (now)`),
      h("th", { scope: "col", class: "number" }, preview.policy), h("th", { scope: "col", class: "number" }, "Mean"))),
    h("tbody", {}, preview.arms.slice(0, 50).map((arm) => h("tr", {},
      h("th", { scope: "row" }, arm.arm, arm.paused && " (paused)"), h("td", { class: "number" }, percent(arm.current_propensity)),
      h("td", { class: "number" }, percent(arm.propensity)), h("td", { class: "number" }, meanReward(arm.mean, bounded)))))));
}

function setUpExport(name) {
  byId("export-button").onclick = () => open(byId("export-dialog"));
  onSubmit(byId("export-form"), async () => {
    const what = byId("export-form").elements.what.value;
    const format = what === "parquet" ? "parquet" : "ndjson";
    const [path, content] = what === "events" ? ["events", "events"] : ["export", "decisions"];
    await download(`${url("v1", "bandits", name, path)}?format=${format}`, `${name}-${content}.${format}`);
    byId("export-dialog").close();
  }, (error) => { byId("export-problem").textContent = error.message; });
}

function setUpArms(name, currentData) {
  byId("add-button").onclick = () => {
    byId("add-features-field").hidden = !currentData()?.has_arm_features;
    open(byId("add-dialog"));
  };
  onSubmit(byId("add-form"), async () => {
    const features = parseObject(byId("add-features").value, "features");
    await call("POST", url("v1", "bandits", name, "arms"), { arm: byId("add-arm").value, features });
    byId("add-arm").value = byId("add-features").value = "";
    byId("add-dialog").close();
  }, (error) => showFieldProblem(byId(error.message.includes("feature") ? "add-features" : "add-arm"), error.message));
  onSubmit(byId("limits-form"), async () => {
    const [min_share, max_share] = ["min_share", "max_share"].map((key) => parseValue(byId(`limits-${key}`).value));
    await call("PATCH", url("v1", "bandits", name, "arms", byId("limits-form").dataset.arm),
      { min_share: min_share ?? 0, max_share: max_share ?? 1 });
    byId("limits-dialog").close();
  }, (error) => showProblem("limits", error));
  onSubmit(byId("retire-form"), async () => {
    await call("PATCH", url("v1", "bandits", name, "arms", byId("retire-form").dataset.arm), { retired: true });
    byId("retire-dialog").close();
  }, (error) => { byId("retire-problem").textContent = error.message; });
}

function setUpDelete(name) {
  byId("delete-button").onclick = () => open(byId("delete-dialog"));
  onSubmit(byId("delete-form"), async () => {
    const query = new URLSearchParams({ confirm: byId("delete-confirm").value, erase: byId("delete-erase").checked });
    await call("DELETE", `${url("v1", "bandits", name)}?${query}`);
    location.href = "/";
  }, (error) => showFieldProblem(byId("delete-confirm"), error.message));
}

/** The context of the latest decision, or one without values; undefined if the bandit has no features of contexts. */
function latestContext({ events, features }) {
  return features.length === 0 ? undefined : events.find(({ kind }) => kind === "decision")?.context ?? {};
}

/** Enable the buttons whose forms depend on the data of the page, once there are some, and on the list of policies. */
export function enableActions(data) {
  if (data === null) return;
  for (const id of ["add-button", "code-button", "arms-csv"]) byId(id).disabled = false;
  byId("policy-button").disabled = !("isReady" in byId("policy-button").dataset);
}

async function setUpPolicyChange(name, currentData) {
  const offered = await call("GET", "/pages/policies");
  let fields = new PolicyFields(byId("policy-fields"), "policy", offered, false);
  byId("policy-button").onclick = () => {
    const { has_features: hasFeatures = false, policy } = currentData() ?? {};
    fields = new PolicyFields(byId("policy-fields"), "policy", offered, hasFeatures, policy);
    byId("preview").replaceChildren();
    open(byId("policy-dialog"));
  };
  byId("policy-button").dataset.isReady = "";
  enableActions(currentData());
  byId("preview-button").onclick = async () => {
    clearProblems(byId("policy-form"));
    byId("preview").replaceChildren(h("p", { class: "soft" }, "Replaying the rewards…"));
    try {
      const draws = Math.max(1, Math.min(1000, Math.floor(MAX_DRAWS / (currentData()?.arm_count ?? 1))));
      const preview = await whileWaiting("policy-waiting", fields.values().policy, () => call("POST",
        url("v1", "bandits", name, "policy", "preview"), { ...fields.values(), draws, context: latestContext(currentData()) }));
      byId("preview").replaceChildren(previewTable(preview, latestContext(currentData())));
    } catch (error) {
      byId("preview").replaceChildren();
      showProblem("policy", error);
    }
  };
  onSubmit(byId("policy-form"), async () => {
    await whileWaiting("policy-waiting", fields.values().policy, () => call("PUT", url("v1", "bandits", name, "policy"), fields.values()));
    byId("policy-dialog").close();
  }, (error) => showProblem("policy", error));
  setUpShadow(name, () => fields.values(), (error) => showProblem("policy", error));
}

/**
 * Set up the buttons that the role of the key permits; returns whether it is an admin. `currentData` returns the data that
 * the page shows.
 */
export async function setUpActions(name, currentData) {
  const { role } = await call("GET", "/pages/who");
  const admin = role === "admin";
  byId("actions").hidden = false;
  for (const id of ["add-button", "policy-button", "delete-button"]) byId(id).hidden = !admin;
  setUpExport(name);
  setUpSnippets(name, currentData);
  if (!admin) return false;
  setUpArms(name, currentData);
  setUpDelete(name);
  setUpPolicyChange(name, currentData).catch(() => {});
  return true;
}
