// The theme is known before anything is drawn.
"use strict";
document.documentElement.dataset.theme = (() => {
  const asked = new URLSearchParams(location.search).get("theme");
  let stored = null;
  try { stored = localStorage.getItem("plinth-theme"); } catch { /* there is none */ }
  return asked || stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
})();
