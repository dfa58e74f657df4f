// Small things for building pages. Text is only ever set as text, so no name can become markup

/** Make an element: `h("p", { class: "soft" }, "text", child)`; a function is a listener, `true` an empty attribute. */
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

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return value < 100_000 ? whole.format(value) : short.format(value);
}

export function percent(value, digits = 1) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : `${(100 * value).toFixed(digits)} %`;
}

export function decimal(value, digits = 3) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits);
}

/** The share that an arm must and may have, such as "10–30 %"; empty where nothing limits it. */
export function limits(least, most) {
  const [low, high] = [least, most].map((share) => Number((100 * share).toFixed(1)));
  if (least > 0 && most < 1) return low === high ? `${low} %` : `${low}–${high} %`;
  if (least > 0) return `≥ ${low} %`;
  return most < 1 ? `≤ ${high} %` : "";
}

/** A clock time of today, else the date as well; `seconds` since 1970. */
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** Put a text into the clipboard; the button says for a moment that it is there, or `otherwise`. */
export async function copy(text, button, otherwise = "Mark it and copy") {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = otherwise;
  }
  setTimeout(() => { button.textContent = before; }, 2000);
}

/** Hand a file to the person as a download. */
export function save(content, name) {
  const link = h("a", { download: name, href: URL.createObjectURL(content) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Show what was wrong beside a field, and tell readers of the screen; an empty text takes it away. */
export function fieldProblem(field, text) {
  const place = byId(`${field.id}-problem`);
  place.textContent = text;
  field.setAttribute("aria-invalid", String(Boolean(text)));
  if (text) field.focus();
}
