"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; tell(); });
  system.addEventListener("change", tell);
  button.hidden = false;
  tell();
  root.dataset.ready = "true";
})();
