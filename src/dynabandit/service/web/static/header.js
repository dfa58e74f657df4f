// The header of every page: the buttons for light or dark colours and for the API key
import { askForKey } from "./api.js";

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme-button");

/** Whether the page shows dark colours now. */
export function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
}

function announceTheme() {
  button.setAttribute("aria-pressed", String(isDark()));
  root.dispatchEvent(new CustomEvent("theme"));
}

button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is disabled */ }
  announceTheme();
});
prefersDark.addEventListener("change", announceTheme);
button.setAttribute("aria-pressed", String(isDark()));
document.getElementById("key-button")?.addEventListener("click", async () => {
  if (await askForKey()) location.reload();
});
