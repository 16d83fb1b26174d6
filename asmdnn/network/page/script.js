"use strict";
// Works on what is already on the page: links values in the arena with the primitives that make them, sorts tables.
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
  const UNIT = { B: 1, KiB: 1024, MiB: 1 << 20 };  // of "1.2 MiB" and "3,400"; other texts are compared as such
  const value = cell => { const found = cell.textContent.trim().match(/^([\d.,e+]+)(?: (B|KiB|MiB))?$/); return found ? Number(found[1].replaceAll(",", "")) * (UNIT[found[2]] || 1) : cell.textContent; };
  for (const table of $$("table.steps")) [...table.querySelectorAll("th")].forEach((head, column, heads) => {
    if (head.textContent === "share") return;  // as cycles
    head.tabIndex = 0;
    head.onkeydown = event => { if (event.key === "Enter") head.onclick(); };
    head.onclick = () => {
      const down = head.getAttribute("aria-sort") === "descending" ? false : head.getAttribute("aria-sort") === "ascending" || head.className === "n";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map(row => [value(row.cells[column]), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    };
  });
})();
