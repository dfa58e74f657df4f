// Runs before the first paint, so that no page flashes in the wrong colours
(() => {
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
