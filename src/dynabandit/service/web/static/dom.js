// Helpers to build elements and format values. Text is only set as text content, so no name can become markup

/** Create an element: `h("p", { class: "soft" }, "text", child)`; a function value is an event listener. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

const integerFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compactFormat = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return value < 100_000 ? integerFormat.format(value) : compactFormat.format(value);
}

export function percent(value, digits = 1) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`;
}

export function decimal(value, digits = 3) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits);
}

/** A mean reward: a percentage if rewards are in [0, 1], else a number in their unit. */
export function meanReward(value, bounded) {
  if (bounded || value === null || value === undefined || Number.isNaN(value)) return percent(value);
  return String(Number(value.toPrecision(4)));
}

/** A number of seconds, in the largest unit of which there are at least two. */
export function duration(seconds) {
  const [size, unit] = [[86400, "days"], [3600, "hours"], [60, "minutes"], [1, "seconds"]].find(([size]) => seconds >= 2 * size) ?? [1, "s"];
  return `${Number((seconds / size).toPrecision(2))} ${unit}`;
}

/** The minimum and maximum share of an arm, such as "10–30 %"; empty without limits. */
export function formatLimits(min, max) {
  const [low, high] = [min, max].map((share) => Number((100 * share).toFixed(1)));
  if (min > 0 && max < 1) return low === high ? `${low} %` : `${low}–${high} %`;
  if (min > 0) return `≥ ${low} %`;
  return max < 1 ? `≤ ${high} %` : "";
}

/** The time of day, with the date unless it is today; `seconds` since 1970. */
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/**
 * Copy a text to the clipboard; the button briefly says "Copied", or `failure` where that is not permitted. It counts in
 * `data-copied` how often the text was copied.
 */
export async function copy(text, button, failure = "Select and copy it") {
  button.dataset.text ??= button.textContent; // not "Copied" after a second click
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    button.dataset.copied = Number(button.dataset.copied ?? 0) + 1;
  } catch {
    button.textContent = failure;
  }
  setTimeout(() => { button.textContent = button.dataset.text; }, 2000);
}

let isPressed = false; // the main button of the mouse, or a finger
let postponed = null;
addEventListener("pointerdown", ({ button }) => { isPressed = button === 0; }, true);
for (const end of ["pointerup", "pointercancel"]) {
  addEventListener(end, () => setTimeout(() => { // after the click
    isPressed = false;
    postponed?.();
    postponed = null;
  }), true);
}

/** Call `show` now, or when the pointer is released: a click on an element that is replaced meanwhile would be lost. */
export function unlessPressed(show) {
  if (isPressed) postponed = show;
  else show();
}

/** Offer a file as a download. */
export function save(content, name) {
  const link = h("a", { download: name, href: URL.createObjectURL(content) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A cell of a CSV file. A text that a spreadsheet would take for a formula starts with an apostrophe. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Offer rows of texts and numbers as a CSV file. */
export function saveCsv(rows, name) {
  const text = rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
  save(new Blob(["\ufeff", text], { type: "text/csv" }), name); // the byte order mark lets Excel read UTF-8
}

/** Show an error message beside a field and focus it; an empty text removes the message. */
export function showFieldProblem(field, text) {
  byId(`${field.id}-problem`).textContent = text;
  field.setAttribute("aria-invalid", String(Boolean(text)));
  if (text) field.focus();
}
