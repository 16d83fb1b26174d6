"use strict";
const byId = id => document.getElementById(id);
const {lines, sources, steps, entry, memory} = TRACE;
const FLAGS = ["cf", "zf", "sf", "of", "pf"], WINDOW = 192;
const bytesOf = hex => Uint8Array.from(hex.match(/../g) || [], pair => parseInt(pair, 16));
let at = 0, timer = 0, shownPath = "";

/* The state behind the first `count` steps, and what the last of them touched. */
function stateAfter(count) {
  const registers = {}, arrays = {};
  for (const [name, hex] of Object.entries(entry)) registers[name] = bytesOf(hex);
  for (const [name, [hex]] of Object.entries(memory)) arrays[name] = bytesOf(hex);
  for (let i = 0; i < count; i++) {
    for (const [name, hex] of Object.entries(steps[i].changed)) registers[name] = bytesOf(hex);
    for (const [name, pieces] of Object.entries(steps[i].stored || {}))
      for (const [place, hex] of pieces) arrays[name].set(bytesOf(hex), place);
  }
  return {registers, arrays};
}

function lanesOf(data, type) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength), size = Number(type[1]), found = [];
  for (let i = 0; i + size <= data.length; i += size) {
    const read = {f4: () => view.getFloat32(i, true), f8: () => view.getFloat64(i, true), f2: () => view.getUint16(i, true),
      i1: () => view.getInt8(i), u1: () => view.getUint8(i), b1: () => view.getUint8(i), i2: () => view.getInt16(i, true),
      u2: () => view.getUint16(i, true), i4: () => view.getInt32(i, true), u4: () => view.getUint32(i, true),
      i8: () => view.getBigInt64(i, true), u8: () => view.getBigUint64(i, true),
      c1: () => { const code = view.getUint8(i); return code > 31 && code < 127 ? String.fromCharCode(code) : "·"; },
      x4: () => view.getUint32(i, true).toString(16).padStart(8, "0")}[type];
    const value = read();
    found.push(type[0] === "f" && typeof value === "number" ? shortened(value) : String(value));
  }
  return found;
}
function shortened(value) {
  if (!Number.isFinite(value) || Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? value.toPrecision(5).replace(/\.?0+$/, "") : value.toExponential(2);
}
function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}
function named(kind, name, purpose) {
  const box = element("div", kind), title = element("div", "name");
  title.append(element("span", "", name));
  if (purpose) title.append(element("b", "", purpose));
  box.append(title);
  return box;
}

function showGeneral(registers, changed, held) {
  const used = new Set(Object.keys(entry));
  steps.forEach(step => Object.keys(step.changed).forEach(name => used.add(name)));
  byId("general").replaceChildren(...[...used].filter(n => /^(r|k)/.test(n) && n !== "rsp").sort().map(name => {
    const box = named(name in changed ? "hit" : "", name, held[name]);
    const data = registers[name], value = element("div", "value none", "–");
    if (data) {
      const number = new DataView(data.buffer).getBigInt64(0, true), hex = BigInt.asUintN(64, number).toString(16);
      value.className = "value";
      value.textContent = name[0] === "k" || number > 9999999n || number < -9999999n ? "0x" + hex : String(number);
      for (const [array, start] of Object.entries(starts)) {
        const distance = number - start;
        if (distance >= 0n && distance <= BigInt(memory[array][0].length / 2)) value.textContent = `${array} + ${distance}`;
      }
    }
    box.append(value);
    return box;
  }));
  byId("flags").replaceChildren(...FLAGS.map(name => {
    const data = registers[name], text = data && data.length ? data[0] : "?";
    return element("span", name in changed ? "hit" : "", `${name.toUpperCase()} ${text}`);
  }));
}
/* Arguments that are pointers, by where they point to at the call. */
const starts = {};
for (const [name, hex] of Object.entries(entry)) {
  const array = Object.keys(memory).find(candidate => TRACE.pointers[candidate] === name);
  if (array) starts[array] = new DataView(bytesOf(hex).buffer).getBigInt64(0, true);
}

function showVectors(registers, changed, held) {
  const type = byId("lanes").value, names = Object.keys(registers).filter(name => /^v\d/.test(name));
  names.sort((a, b) => a.slice(1) - b.slice(1));
  byId("vectors").replaceChildren(...names.map(name => {
    const box = named("vector" + (name in changed ? " hit" : ""), TRACE.vector + name.slice(1), held[name]);
    const cells = element("div", "cells of" + type[1]);
    cells.append(...lanesOf(registers[name], type).map(text => element("span", "lane", text)));
    box.append(cells);
    return box;
  }));
  if (!names.length) byId("vectors").replaceChildren(element("p", "none", "none is written yet"));
}

function showMemory(arrays, step) {
  byId("memory").replaceChildren(...Object.entries(arrays).map(([name, data]) => {
    const type = memory[name][1], size = Number(type[1]), total = Math.floor(data.length / size);
    const touches = (kind, i) => ((step && step[kind] || {})[name] || []).some(([b, e]) => b < (i + 1) * size && i * size < e);
    const touched = ["read", "written"].flatMap(kind => (step && step[kind] || {})[name] || []);
    const middle = touched.length ? Math.floor(touched[0][0] / size) : 0;
    const first = total <= WINDOW ? 0 : Math.max(0, Math.min(total - WINDOW, middle - 16));
    const shown = lanesOf(data.subarray(first * size, (first + WINDOW) * size), type);
    const box = named("array", `${name}[${total}]`, total > WINDOW ? `from ${first}` : "");
    const cells = element("div", "cells of" + size);
    cells.append(...shown.map((text, k) => {
      const i = first + k, kind = touches("written", i) ? "written" : touches("read", i) ? "read" : "";
      const cell = element("span", kind, text);
      cell.title = `${name}[${i}]`;
      return cell;
    }));
    box.append(cells);
    return box;
  }));
}

function mark(pane, place) {
  pane.querySelectorAll(".now").forEach(row => row.classList.remove("now"));
  const row = pane.children[place];
  if (!row) return;
  row.classList.add("now");
  pane.scrollTop = row.offsetTop - pane.offsetTop - pane.clientHeight / 2;
}
function showSource(line) {
  byId("file").textContent = line.file ? `${line.file}:${line.number}` : "what the function saves and restores";
  const text = sources[line.path] || [];
  if (line.path !== shownPath) {
    shownPath = line.path;
    byId("source").replaceChildren(...text.map((code, i) => {
      const row = element("div");
      row.append(element("i", "", i + 1), element("span", "", code || " "));
      return row;
    }));
  }
  mark(byId("source"), line.number - 1);
}

function show() {
  const step = at ? steps[at - 1] : null, {registers, arrays} = stateAfter(at);
  const line = lines[(step || steps[0]).line];
  byId("place").value = at;
  byId("count").textContent = `${at} / ${steps.length}`;
  showSource(line);
  mark(byId("listing"), (step || steps[0]).line);
  showGeneral(registers, step ? step.changed : {}, line.held);
  showVectors(registers, step ? step.changed : {}, line.held);
  showMemory(arrays, step);
}
function go(to) { at = Math.max(0, Math.min(steps.length, to)); show(); }
function play() {
  byId("play").textContent = timer ? "play" : "pause";
  if (timer) { clearInterval(timer); timer = 0; return; }
  if (at === steps.length) at = 0;
  timer = setInterval(() => at < steps.length ? go(at + 1) : play(), 350);
}

byId("listing").replaceChildren(...lines.map(line => {
  const row = element("div");
  row.append(element("i", "", line.at), element("span", "", line.text), element("em", "", line.effect));
  return row;
}));
byId("place").max = steps.length;
byId("place").oninput = event => go(Number(event.target.value));
byId("lanes").onchange = show;
byId("first").onclick = () => go(0);
byId("back").onclick = () => go(at - 1);
byId("next").onclick = () => go(at + 1);
byId("last").onclick = () => go(steps.length);
byId("play").onclick = play;
document.addEventListener("keydown", event => {
  if (event.target.matches("input, select")) return;
  const act = {ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(steps.length), " ": play};
  if (act[event.key]) { event.preventDefault(); act[event.key](); }
});
byId("lanes").value = TRACE.lanes;
go(Number(new URLSearchParams(location.search).get("step") || location.hash.slice(1) || 0));
