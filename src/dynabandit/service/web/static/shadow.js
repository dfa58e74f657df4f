// The shadow policy on the page of one bandit: its comparison with the policy, its promotion and its end
import { call, url } from "./api.js";
import { byId, count, h, meanReward, percent } from "./dom.js";
import { onSubmit, open } from "./forms.js";
import { liftText } from "./monitoring.js";
import { whileWaiting } from "./waiting.js";

const interval = ({ low, high }, text) => (low === null ? "" : ` (${text(low)} to ${text(high)})`);

function verdict({ low, high }) {
  if (low === null || (low <= 0 && high >= 0)) return "The difference is not clear yet.";
  return low > 0 ? "The shadow policy is clearly better." : "The shadow policy is clearly worse.";
}

function differenceText({ difference, problem, rewards, uncovered, unknown }, bounded) {
  if (problem) return `No estimate: ${problem}.`;
  const text = (value) => liftText(value, bounded);
  const others = uncovered + unknown;
  return `Difference: ${text(difference.value)}${interval(difference, text)}. ${verdict(difference)} ` +
    `Estimated from ${count(rewards)} rewards${others ? `; ${count(others)} others cannot be compared` : ""}.`;
}

function policyRow(title, mean, bounded) {
  const text = (value) => meanReward(value, bounded);
  return h("tr", {}, h("th", { scope: "row" }, title),
    h("td", { class: "number" }, mean === null ? "–" : text(mean.value)),
    h("td", { class: "number roomy" }, mean === null || (mean.low ?? null) === null ? "–" : `${text(mean.low)} to ${text(mean.high)}`));
}

function armRow({ arm, decided, chosen }, decisions) {
  return h("tr", {}, h("th", { scope: "row" }, arm),
    h("td", { class: "number" }, percent(decided / decisions)), h("td", { class: "number" }, percent(chosen / decisions)));
}

let shown = "";

/** Show the shadow policy, if there is one. */
export function showShadow({ shadow, policy, bounded }) {
  const content = JSON.stringify([shadow, policy]);
  if (content === shown) return;
  shown = content;
  byId("shadow-section").hidden = shadow === null;
  if (shadow === null) return;
  const { decisions, agreed } = shadow;
  byId("shadow-note").textContent = `${shadow.policy} sees the same traffic, but does not decide`;
  const agreement = decisions ? `Both chose the same in ${percent(agreed / decisions)} of ${count(decisions)} decisions. ` : "";
  byId("shadow-text").textContent = `${agreement}${differenceText(shadow, bounded)}`;
  const own = shadow.policy_mean === null ? null : { value: shadow.policy_mean };
  byId("shadow-means").replaceChildren(policyRow(`${policy} (decides)`, own, bounded), policyRow(`${shadow.policy} (shadow)`, shadow.mean, bounded));
  byId("shadow-arms").replaceChildren(...(decisions ? shadow.arms : []).map((one) => armRow(one, decisions)));
}

/** Set up the buttons of an admin; `values` returns the policy that the form for policies has. */
export function setUpShadow(name, values, showPolicyProblem) {
  byId("shadow-buttons").hidden = false;
  byId("shadow-button").onclick = async () => {
    try {
      await whileWaiting("policy-waiting", values().policy, () => call("PUT", url("v1", "bandits", name, "shadow"), values()));
      byId("policy-dialog").close();
    } catch (error) {
      showPolicyProblem(error);
    }
  };
  byId("promote-button").onclick = () => open(byId("promote-dialog"));
  onSubmit(byId("promote-form"), async () => {
    await call("POST", url("v1", "bandits", name, "shadow", "promote"), { keep: byId("promote-keep").checked });
    byId("promote-dialog").close();
  }, (error) => { byId("promote-problem").textContent = error.message; });
  byId("end-shadow-button").onclick = () => call("DELETE", url("v1", "bandits", name, "shadow"))
    .catch((error) => { byId("shadow-problem").textContent = error.message; });
}
