"use strict";
// Only links what is already on the page: values in the arena and the primitives that make them.
(() => {
  const root = document.documentElement, $$ = s => [...document.querySelectorAll(s)];
  const stored = (() => { try { return localStorage.getItem("asmdnn-theme") } catch { return null } })();
  root.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.querySelector("#theme").onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("asmdnn-theme", root.dataset.theme) } catch { /* a page without storage forgets */ }
  };
  const mark = (step, on) => $$(`[data-step="${step}"]`).forEach(e => e.classList.toggle("hot", on));
  for (const e of $$("[data-step]")) {
    e.onmouseenter = () => mark(e.dataset.step, true);
    e.onmouseleave = () => mark(e.dataset.step, false);
  }
  for (const box of $$(".arena .v")) box.onclick = () => {
    const row = document.querySelector(`tr[data-step="${box.dataset.step}"]`);
    if (row) row.scrollIntoView({ block: "center", behavior: "smooth" });
  };
})();
