"use strict";
// Only links what is already on the page: instructions and source lines, kernels and tiles.
(() => {
  const root = document.documentElement, $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];
  root.classList.add("js");
  const stored = (() => { try { return localStorage.getItem("asmdnn-theme") } catch { return null } })();
  root.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  $("#theme").onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("asmdnn-theme", root.dataset.theme) } catch { /* a page without storage forgets */ }
  };

  // Kernels: one at a time; the source pane shows what emitted this one.
  const kernels = new Map($$(".kernel").map(e => [e.dataset.kernel, e])), tabs = $$(".tabs button");
  if (tabs.length > 6) $(".tabs").classList.add("many");
  for (const tab of tabs) tab.title = tab.innerText;
  let rowsOf = new Map(), current = null;
  function show(number) {
    current = kernels.get(String(number));
    if (!current) return;
    for (const e of kernels.values()) e.classList.toggle("on", e === current);
    for (const tab of tabs) tab.classList.toggle("on", tab.dataset.kernel === String(number));
    rowsOf = new Map();
    for (const row of $$(".i[data-s]", current)) {
      if (!rowsOf.has(row.dataset.s)) rowsOf.set(row.dataset.s, []);
      rowsOf.get(row.dataset.s).push(row);
    }
    const most = Math.max(1, ...[...rowsOf.values()].map(rows => rows.length));
    for (const line of $$("#source .l")) {
      const rows = rowsOf.get(line.id.slice(1)) || [];
      line.classList.toggle("emits", rows.length > 0);
      line.style.setProperty("--heat", 0.25 + 0.75 * Math.sqrt(rows.length / most));
      line.title = rows.length ? `emits ${rows.length} instruction${rows.length > 1 ? "s" : ""} of this kernel` : "";
    }
    const first = $("#source .l.emits");
    if (first) reveal(first);
  }
  function reveal(line) {
    const pane = $("#source"), box = pane.getBoundingClientRect(), at = line.getBoundingClientRect();
    if (at.top < box.top + 40 || at.bottom > box.bottom - 20) pane.scrollTop += at.top - box.top - box.height / 3;
  }
  for (const tab of tabs) tab.onclick = () => show(tab.dataset.kernel);
  for (const link of $$("[data-open]")) link.onclick = () => show(link.dataset.open);
  const wanted = /^#(?:kernel|i)(\d+)/.exec(location.hash);
  if (tabs.length) show(wanted && kernels.has(wanted[1]) ? wanted[1] : tabs[0].dataset.kernel);
  if (wanted && current) document.getElementById(location.hash.slice(1))?.scrollIntoView();

  // Hover: an instruction marks its source line and its registers, a source line marks its instructions.
  let marked = [];
  function mark(elements) {
    for (const e of marked) e.classList.remove("hot");
    marked = elements.filter(Boolean);
    for (const e of marked) e.classList.add("hot");
  }
  const named = text => [...text.matchAll(/\b([xyz]mm\d+|tmm\d|k[1-7]|r\d+d?|[re]?(?:ax|bx|cx|dx|si|di|bp|sp))\b/g)].map(m => m[1]);
  const whole = name => name.replace(/^[xyz]mm/, "vector ");  // xmm3 is a part of ymm3
  function hoverRow(row) {
    const line = row.dataset.s && document.getElementById("l" + row.dataset.s), map = $(".map", current);
    const names = new Set(named($("code", row).textContent).map(whole));
    mark([row, line, ...$$(".r", map).filter(r => names.has(whole(r.dataset.r)))]);
    const cursor = $(".cursor", map);
    cursor.style.display = "block";
    cursor.style.left = 100 * (+row.id.split("-")[1] + 0.5) / map.dataset.total + "%";
    if (line) reveal(line);
  }
  document.addEventListener("mouseover", event => {
    const row = event.target.closest(".i"), line = event.target.closest(".l");
    if (row) hoverRow(row);
    else if (line) mark([line, ...(rowsOf.get(line.id.slice(1)) || [])]);
  });
  $("#source").addEventListener("click", event => {
    const line = event.target.closest(".l"), rows = line && rowsOf.get(line.id.slice(1));
    if (!rows) return;
    const below = rows.find(row => row.getBoundingClientRect().top > innerHeight / 2 + 20) || rows[0];
    below.scrollIntoView({ block: "center" });
  });
  for (const map of $$(".map")) map.addEventListener("click", event => {
    const box = $(".over", map).getBoundingClientRect(), total = +map.dataset.total;
    const index = Math.min(total - 1, Math.floor(total * (event.clientX - box.left) / box.width));
    const row = index >= 0 && document.getElementById(`i${current.dataset.kernel}-${index}`);
    if (row) { row.scrollIntoView({ block: "center" }); hoverRow(row); }
  });

  // The schedule's pictures: Python has drawn the tiles, here they are coloured.
  const hue = n => Math.round(210 + n * 137.508) % 360;
  for (const figure of $$(".plane")) {
    const { phase, blocks } = JSON.parse($("script", figure).textContent);
    const slider = $("input", figure), tip = $(".tip", figure);
    const all = blocks.flatMap(b => b.r), least = Math.min(...all), most = Math.max(...all);
    let by = "kernel", block = blocks[0];
    function paint() {
      block = blocks[slider ? +slider.value : 0];
      $("output", figure).textContent = block.n;
      for (const b of $$("[data-by]", figure)) b.classList.toggle("on", b.dataset.by === by);
      for (const shape of $$(".shape", figure)) {
        const shown = +shape.dataset.shape === block.s;
        shape.toggleAttribute("hidden", !shown);
        for (const tile of shown ? $$(".t", shape) : []) {
          const t = +tile.dataset.t, order = (block.r[t] - least) / Math.max(1, most - least);
          tile.classList.toggle("order", by === "order");
          tile.style.setProperty("--h", hue((by === "thread" ? block.t : block.k)[t]));
          tile.style.setProperty("--o", 88 - 58 * order + "%");
        }
      }
    }
    for (const button of $$("[data-by]", figure)) button.onclick = () => { by = button.dataset.by; paint(); };
    if (slider) slider.oninput = paint;
    figure.addEventListener("mouseover", event => {
      const tile = event.target.closest(".t");
      if (!tile) return;
      const t = +tile.dataset.t;
      tip.textContent = `record ${block.r[t]} of phase ${phase}: kernel ${block.k[t]}, thread ${block.t[t]}`;
    });
    figure.addEventListener("click", event => {
      const tile = event.target.closest(".t");
      if (tile && kernels.has(String(block.k[+tile.dataset.t]))) { show(block.k[+tile.dataset.t]); $("#kernels").scrollIntoView(); }
    });
    paint();
  }
})();
