"use strict";
// Draws the variant that is chosen.  All text of the model goes through textContent: names are data.
(() => {
  const all = JSON.parse(document.querySelector("#variants").textContent), $ = s => document.querySelector(s);
  const state = { variant: all[0], pinned: all[0], step: 0, ghz: 3, sort: "slowest", down: true };
  const SVG = "http://www.w3.org/2000/svg", WIDTH = 178, HEIGHT = 46, GAP = 26, DOWN = 30;

  // ---- small things
  function make(name, attributes = {}, ...children) {
    const svg = ["svg", "g", "rect", "path", "text", "title"].includes(name);
    const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.map(child => child instanceof Node ? child : String(child)));
    return element;
  }
  const count = n => n.toLocaleString("en");
  const bytes = n => n >= 1 << 20 ? `${(n / (1 << 20)).toPrecision(3)} MiB` : n >= 1024 ? `${(n / 1024).toPrecision(3)} KiB` : `${n} B`;
  const time = cycles => { const us = cycles / state.ghz / 1e3; return us >= 1e3 ? `${(us / 1e3).toPrecision(3)} ms` : `${us.toPrecision(3)} µs`; };
  const values = key => [...new Set(all.map(v => v[key]))];
  const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

  // ---- what is chosen
  function choose(change) {
    const wish = { machine: state.variant.machine, precision: state.variant.precision, threads: state.variant.threads, ...change };
    const found = all.find(v => Object.entries(wish).every(([key, value]) => v[key] === value));
    if (found) Object.assign(state, { variant: found, step: Math.min(state.step, found.steps.length - 1) });
    draw();
  }
  function choices() {
    const words = { machine: "CPU class", precision: "precision", threads: "threads" };
    const sets = Object.entries(words).map(([key, word]) => make("fieldset", {}, make("legend", {}, word),
      make("div", { class: "options" }, ...values(key).map(value => {
        const input = make("input", { type: "radio", name: key, value });
        input.checked = value === state.variant[key];
        input.onchange = () => choose({ [key]: value });
        return make("label", {}, input, value);
      }))));
    const clock = make("input", { type: "number", min: "0.1", max: "10", step: "0.1", value: state.ghz });
    clock.oninput = () => { if (clock.valueAsNumber > 0) { state.ghz = clock.valueAsNumber; draw(); } };
    const pin = make("button", { id: "pin", type: "button" }, "compare with this");
    pin.onclick = () => { state.pinned = state.variant; draw(); };
    $("#choice").replaceChildren(...sets, make("label", { class: "clock" }, "GHz", clock), pin);
  }

  // ---- numbers
  const name = v => `${v.machine}, ${v.precision}, ${v.threads} thread${v.threads > 1 ? "s" : ""}`;
  function summary() {
    const v = state.variant, p = state.pinned, speed = p.cycles / Math.max(v.cycles, 1);
    const fact = (value, word, mark = "") => make("div", { class: "fact" }, make("b", { class: mark }, value), make("span", {}, word));
    const facts = [
      fact(time(v.cycles), `expected, ${count(v.cycles)} cycles`),
      v === p ? fact("1.00 x", "compared with itself")
        : fact(`${speed.toFixed(2)} x`, `as fast as ${name(p)}, at one clock`, speed > 1.005 ? "better" : speed < 0.995 ? "worse" : ""),
      fact(`${(v.cycles_alone / Math.max(v.cycles, 1)).toFixed(2)} x`, `by ${v.threads} thread${v.threads > 1 ? "s" : ""}`),
      fact(v.isa.replaceAll("_", " "), "ISA level"), fact(v.steps.length, "primitives"), fact(v.kernels, "kernels"), fact(v.barriers, "barriers"),
      fact(bytes(v.arena_bytes), "arena"), fact(bytes(v.weights_bytes), "packed weights"),
    ];
    const seconds = v.steps.every(s => s.seconds !== null) ? v.steps.reduce((sum, s) => sum + s.seconds, 0) : null;
    if (seconds !== null && v.steps.length) facts.splice(1, 0, fact(`${(seconds * 1e3).toPrecision(3)} ms`, "measured here"));
    $("#summary").replaceChildren(...facts);
  }

  // ---- graph: a row for each depth, in a row the order of the steps
  function graph() {
    const steps = state.variant.steps, depth = [], rows = [];
    steps.forEach((step, i) => {
      depth[i] = 1 + Math.max(-1, ...step.sources.map(s => depth[s]));
      (rows[depth[i]] ??= []).push(i);
    });
    const widest = Math.max(1, ...rows.map(row => row.length)), total = Math.max(1, ...steps.map(s => s.slowest));
    const place = [];
    rows.forEach((row, y) => row.forEach((i, x) => {
      place[i] = [(widest - row.length) * (WIDTH + GAP) / 2 + x * (WIDTH + GAP) + GAP, y * (HEIGHT + DOWN) + 14];
    }));
    const width = widest * (WIDTH + GAP) + GAP, height = rows.length * (HEIGHT + DOWN) + 8;
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "primitives" });
    steps.forEach((step, i) => step.sources.forEach(s => {
      const [x, y] = [place[s][0] + WIDTH / 2, place[s][1] + HEIGHT], [u, w] = [place[i][0] + WIDTH / 2, place[i][1]];
      svg.append(make("path", { class: "edge", d: `M${x} ${y}C${x} ${y + DOWN} ${u} ${w - DOWN} ${u} ${w}` }));
    }));
    steps.forEach((step, i) => {
      const [x, y] = place[i];
      const node = make("g", { class: "node", "data-step": i, tabindex: 0, role: "button", "aria-label": step.label, transform: `translate(${x} ${y})` },
        make("title", {}, `${i}  ${step.label}\n${step.implementation}\n${count(step.slowest)} cycles`),
        make("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: 6 }),
        make("rect", { class: "bar", x: 6, y: HEIGHT - 8, width: ((WIDTH - 12) * step.slowest / total).toFixed(1), height: 3, rx: 1.5 }),
        make("text", { x: 8, y: 17 }, cut(`${i}  ${step.label}`, 24)),
        make("text", { class: "small", x: 8, y: 31 }, cut(step.result, 28)));
      node.onclick = () => pick(i);
      node.onkeydown = event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(i); } };
      svg.append(node);
    });
    $("#drawing").replaceChildren(svg);
  }

  // ---- arena
  function arena() {
    const v = state.variant, W = 1200, H = 360, L = 70, B = 22, end = v.moments[v.moments.length - 1] || 1;
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "values in the arena" });
    const size = Math.max(v.arena_bytes, 1), x = t => L + (W - L) * t / end, y = b => (H - B) * (1 - b / size);
    for (const part of [0, .25, .5, .75, 1])
      svg.append(make("text", { class: "axis", x: L - 6, y: Math.max(11, y(part * size) + 4).toFixed(1), "text-anchor": "end" }, bytes(Math.round(part * size))));
    for (const [label, offset, wide, first, last, step] of v.boxes) {
      const rect = make("rect", { class: "value", "data-step": step, style: `--h:${(210 + step * 137.508) % 360 | 0}`, x: x(first).toFixed(1), y: y(offset + wide).toFixed(1),
        width: (x(last + 1) - x(first)).toFixed(1), height: Math.max(.6, (H - B) * wide / size).toFixed(1) }, make("title", {}, `${label}: ${bytes(wide)}`));
      rect.onclick = () => pick(step);
      svg.append(rect);
    }
    const every = Math.ceil(v.steps.length / 24) || 1;
    for (let i = 0; i < v.steps.length; i += every) svg.append(make("text", { class: "axis", x: x(v.moments[i]).toFixed(1), y: H - 6 }, i));
    $("#memory").replaceChildren(svg);
  }

  // ---- tables
  const columns = [
    ["#", null, (s, i) => i, (s, i) => i], ["operators", "label", s => s.label], ["primitive", "implementation", s => s.implementation],
    ["result", "result", s => s.result], ["reads", "read_bytes", s => s.read_bytes, s => bytes(s.read_bytes)],
    ["writes", "written_bytes", s => s.written_bytes, s => bytes(s.written_bytes)],
    ["cycles", "slowest", s => s.slowest, s => count(s.slowest)],
    ["µs", "seconds", s => s.seconds, s => (s.seconds * 1e6).toFixed(1)],
  ];
  function table() {
    const steps = state.variant.steps, shown = columns.filter(([, key]) => key !== "seconds" || steps.every(s => s.seconds !== null));
    const order = steps.map((_, i) => i), column = shown.find(([, key]) => key === state.sort) || shown[0];
    const by = column[2], way = state.down ? -1 : 1;
    order.sort((a, b) => { const u = by(steps[a], a), w = by(steps[b], b); return way * (u < w ? -1 : u > w ? 1 : 0) || a - b; });
    const heads = shown.map(entry => {
      const button = make("button", { type: "button" }, entry[0]), head = make("th", entry[3] ? { class: "n" } : {}, button);
      if (entry === column) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      button.onclick = () => { Object.assign(state, { sort: entry[1], down: entry === column ? !state.down : !!entry[3] && entry[1] !== null }); draw(); };
      return head;
    });
    const most = Math.max(1, ...steps.map(s => s.slowest));
    const rows = order.map(i => {
      const cells = shown.map(([, key, raw, text]) => make("td", text ? { class: "n" } : {}, key === "label" ? raw(steps[i]) : text ? text(steps[i], i) : make("code", {}, raw(steps[i], i))));
      const bar = make("span", { class: "share" }, make("i", { style: `width:${(100 * steps[i].slowest / most).toFixed(1)}%` }));
      const row = make("tr", { "data-step": i }, ...cells, make("td", {}, bar));
      row.onclick = () => pick(i);
      return row;
    });
    $("#table").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads, make("th", {}, "share"))), make("tbody", {}, ...rows)));
  }
  function kernels() {
    const found = new Map();
    for (const step of state.variant.steps) for (const [kernel, calls, cycles] of step.kernels) {
      const old = found.get(kernel) || [0, 0];
      found.set(kernel, [old[0] + calls, old[1] + cycles]);
    }
    const sum = Math.max(1, [...found.values()].reduce((total, [, cycles]) => total + cycles, 0));
    const rows = [...found].sort((a, b) => b[1][1] - a[1][1]).map(([kernel, [calls, cycles]]) => make("tr", {},
      make("td", {}, make("code", {}, kernel)), make("td", { class: "n" }, count(calls)), make("td", { class: "n" }, count(cycles)),
      make("td", { class: "n" }, `${(100 * cycles / sum).toFixed(1)}%`)));
    const head = make("tr", {}, make("th", {}, "kernel"), ...["calls", "cycles, one thread", "share"].map(w => make("th", { class: "n" }, w)));
    $("#kernels").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  }

  // ---- one step
  function details() {
    const v = state.variant, step = v.steps[state.step];
    if (!step) return $("#details").replaceChildren();
    const row = (word, ...what) => make("tr", {}, make("td", {}, word), make("td", {}, ...what));
    const rows = [
      row("operators", step.nodes.join(", ") || "a reorder between formats"), row("primitive", make("code", {}, step.implementation)),
      row("result", make("code", {}, step.result)), row("reads, writes", `${bytes(step.read_bytes)}, ${bytes(step.written_bytes)}`),
      row("cycles", `${count(step.slowest)} of the slowest thread, ${count(step.cycles)} in all`),
      row("reads results of", step.sources.join(", ") || "inputs and weights"),
    ];
    if (step.seconds !== null) rows.push(row("measured", `${(step.seconds * 1e6).toFixed(1)} µs`));
    step.phases.forEach((words, i) => rows.push(row(`phase ${i}`, words)));
    step.kernels.forEach(([kernel, calls, cycles]) => rows.push(row(`${count(calls)} calls`, make("code", {}, kernel), ` ${count(cycles)} cycles`)));
    $("#details").replaceChildren(make("h2", {}, `${state.step}  ${step.label}`), make("table", {}, make("tbody", {}, ...rows)));
  }
  function pick(step) { state.step = step; details(); mark(); }
  function mark() {
    for (const element of document.querySelectorAll("[data-step]"))
      element.classList.toggle("chosen", Number(element.dataset.step) === state.step);
  }
  function draw() { summary(); graph(); arena(); table(); kernels(); details(); mark(); }

  const root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("asmdnn-theme") } catch { return null } })();
  root.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  $("#theme").onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("asmdnn-theme", root.dataset.theme) } catch { /* a page without storage forgets */ }
  };
  choices();
  draw();
})();
