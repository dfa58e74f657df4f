// Runs before the first paint, so that a page does not flash in the wrong colours
(() => {
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* storage is disabled */ }
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
