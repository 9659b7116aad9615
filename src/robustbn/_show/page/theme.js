"use strict";
/* Light and dark, on all pages: a button that switches from what the system asks for. */
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; tell(); });
  system.addEventListener("change", tell);
  button.hidden = false;
  tell();
})();
