// What every page does: the switch between light and dark, and the key
import { askForKey } from "./api.js";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme-button");

export function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
}

function changed() {
  button.setAttribute("aria-pressed", String(isDark()));
  root.dispatchEvent(new CustomEvent("theme"));
}

button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a browser that keeps nothing */ }
  changed();
});
dark.addEventListener("change", changed);
button.setAttribute("aria-pressed", String(isDark()));
document.getElementById("key-button")?.addEventListener("click", async () => {
  if (await askForKey()) location.reload();
});
