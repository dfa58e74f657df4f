// Which arm is best on the page of one bandit: the probability of each arm, and its difference to a control arm
import { byId, h, meanReward, percent } from "./dom.js";
import { colourDot } from "./interventions.js";
import { seriesStyle } from "./charts.js";
import { liftText, relativeText } from "./monitoring.js";

const select = byId("control");

/** The control arm, which the address of the page remembers; null without one. */
export const controlArm = () => new URLSearchParams(location.search).get("control");

/** Call `onChange` when another control arm was selected. */
export function onControlChange(onChange) {
  select.addEventListener("change", () => {
    const address = new URL(location.href);
    if (select.selectedIndex === 0) address.searchParams.delete("control");
    else address.searchParams.set("control", select.value);
    history.replaceState(null, "", address);
    onChange();
  });
}

/** A difference with its interval below it. */
function differenceCell(estimate, text, style = "number") {
  if (!estimate || estimate[0] === null) return h("td", { class: style }, "–");
  const [value, low, high] = estimate;
  const interval = low === null ? "interval unknown" : `${text(low).replace(" points", "")} to ${text(high)}`;
  return h("td", { class: style }, text(value), h("span", { class: "soft small below" }, interval));
}

function row(one, uplift, control, bounded) {
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * (one.best ?? 0)}%`;
  return h("tr", {},
    h("th", { scope: "row" }, colourDot(one.column), one.arm, " ", one.arm === control && h("span", { class: "badge" }, "control"),
      one.paused && h("span", { class: "badge warm" }, "paused")),
    h("td", { class: "number" }, percent(one.best), one.best !== null && h("span", { class: "track", "aria-hidden": "true" }, bar)),
    h("td", { class: "number roomy" }, meanReward(one.mean, bounded)),
    differenceCell(uplift?.absolute, (value) => liftText(value, bounded)), differenceCell(uplift?.relative, relativeText, "number roomy"));
}

function note({ contextual, arms, arm_count }, control) {
  if (contextual) return "The policy decides by the context, so that the best arm depends on it.";
  if (control !== null && !arms.some(({ arm }) => arm === control)) return `There is no arm “${control}” to compare with.`;
  if (arm_count > arms.length) return "Probabilities are only computed for up to 200 arms.";
  if (arms.some(({ best }) => best !== null)) return "by the estimates of the policy now";
  return "The probabilities are not known yet: each arm needs more rewards.";
}

function showOptions(arms, control) {
  const names = arms.map(({ arm }) => arm);
  const options = [...select.options].slice(1).map(({ value }) => value);
  if (select.length === 0 || JSON.stringify(names) !== JSON.stringify(options)) {
    select.replaceChildren(h("option", { value: "" }, "none"), ...names.map((arm) => h("option", { value: arm }, arm)));
  }
  select.selectedIndex = control === null ? 0 : names.indexOf(control) + 1;
}

let shown = "";

/** Show the comparison of the arms. */
export function showComparison(data) {
  const control = controlArm();
  const uplift = data.control === control ? data.uplift : null; // else of the control arm before, until the next data
  const content = JSON.stringify([data.arms, uplift, control, data.contextual, data.bounded, seriesStyle(0).colour]);
  if (content === shown) return;
  shown = content;
  byId("comparison-note").textContent = note(data, control);
  byId("comparison").hidden = data.contextual;
  showOptions(data.arms, control);
  byId("comparison-rows").replaceChildren(...data.arms.map((one, place) => row(one, uplift?.[place], control, data.bounded)));
}
