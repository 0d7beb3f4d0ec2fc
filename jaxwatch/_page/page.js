"use strict";

// Texts come from a program that nobody vouches for: they get onto the page as textContent, and no other way.

const EVERY_MS = 1000;
const SLOWEST_MS = 8000;
const ROWS = 500;
const FIRST = "first";
const KINDS = { recompile: "", first: "first: ", dispatch: "off the fast path: ", error: "raised: ", violation: "guard broken: " };
const PARTS = { call: "in calls from the cache", miss: "in misses", export: "in exporters", scrape: "in scrapes and this page" };

const byId = (id) => document.getElementById(id);
let state = null; // which history the rows are of
let newest = 0; // number of the last thing that happened and is shown
let failures = 0;
let timer = 0;
let paused = false;
const shown = {}; // of each part, what it was made of: it is made anew only where that has changed

// ---------------------------------------------------------------- words

function duration(seconds) {
  for (const [below, factor, unit] of [[0.9995e-6, 1e9, "ns"], [0.9995e-3, 1e6, "µs"], [0.0995, 1e3, "ms"]]) {
    if (seconds > 0 && seconds < below) return `${(seconds * factor).toFixed(0)} ${unit}`;
  }
  if (seconds === 0) return "0 s";
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${count(seconds)} s` : `${(seconds / 3600).toFixed(1)} h`;
}

function count(number) {
  return Math.round(number).toLocaleString("en");
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

function percent(part, whole) {
  const share = (100 * part) / whole;
  return share > 0 && share < 1 ? "< 1 %" : `${share.toFixed(0)} %`;
}

// ---------------------------------------------------------------- elements

function cell(text, kind = "") {
  const made = document.createElement("td");
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function row(...cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

function fill(id, made_of, make) {
  const text = JSON.stringify(made_of);
  if (shown[id] === text) return;
  shown[id] = text;
  byId(id).replaceChildren(...make());
}

function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

// ---------------------------------------------------------------- parts

function showHead(frame) {
  say("program", frame.program);
  document.title = frame.program ? `jaxwatch · ${frame.program}` : "jaxwatch";
  const wall = frame.wall_seconds;
  const compiling = frame.compile_seconds;
  const share = wall >= compiling && compiling > 0 ? ` (${percent(compiling, wall)})` : "";
  const pieces = [`${duration(wall)}, ${duration(compiling)}${share} of it compiling`];
  if (frame.again_seconds > 0) pieces.push(`${duration(frame.again_seconds)} of that again`);
  if (frame.unlogged > 0) pieces.push(`${count(frame.unlogged)} earlier misses, their cost not known here`);
  say("headline", pieces.join(", "));
}

function showHappened(frame) {
  const body = byId("happened");
  for (const one of frame.happened) {
    if (one.number <= newest) continue; // two answers that crossed
    const what = cell(KINDS[one.kind] + one.what, "what");
    if (one.advice) {
      const advice = document.createElement("span");
      advice.className = "advice";
      advice.textContent = `→ ${one.advice}`;
      what.append(advice);
    }
    const made = row(
      cell(clock(one.time), "short"), cell(one.function), cell(one.call ? count(one.call) : "", "number"),
      what, cell(one.seconds > 0 ? duration(one.seconds) : "", "number"), cell(one.site),
    );
    made.dataset.kind = one.kind;
    if (one.kind !== FIRST) made.className = "again-row";
    made.hidden = one.kind === FIRST && !byId("all").checked;
    body.prepend(made);
    newest = one.number;
  }
  while (body.rows.length > ROWS) body.deleteRow(-1);
  say("dropped", frame.dropped > 0 ? `${count(frame.dropped)} earlier ones are no longer kept` : "");
  byId("none").hidden = [...body.rows].some((made) => !made.hidden);
}

function showFunctions(frame) {
  fill("functions", frame.functions, () => frame.functions.map((one) => {
    const name = cell(one.function);
    name.title = one.definition;
    const latencies = [one.p50, one.p99].map((value) => cell(value === null ? "–" : duration(value), "number"));
    const calls = (one.calls_exact ? "" : "≥") + count(one.calls);
    return row(name, ...[calls, count(one.misses), count(one.keys), duration(one.seconds)].map((text) => cell(text, "number")), ...latencies);
  }));
  say("more-functions", left(frame.functions_left_out, "function"));
}

function showEager(frame) {
  fill("eager", frame.eager, () => frame.eager.map((one) =>
    row(cell(one.site), cell(one.what), cell(count(one.count), "number"), cell(duration(one.seconds), "number"))));
  say("more-eager", frame.eager.length ? left(frame.eager_left_out, "line") : "None so far.");
}

function left(number, noun) {
  return number > 0 ? `and ${count(number)} more ${noun}${number === 1 ? "" : "s"}` : "";
}

function showTimeline(frame) {
  const { start, width, once, again, eager } = frame.timeline;
  const totals = once.map((seconds, slot) => seconds + again[slot] + eager[slot]);
  const most = Math.max(width, ...totals); // full height: compiling all the time
  fill("timeline", frame.timeline, () => totals.flatMap((_, slot) => {
    let below = 120;
    return [["once", once], ["again", again], ["eager", eager]].flatMap(([kind, series]) => {
      const height = (118 * series[slot]) / most;
      if (height <= 0) return [];
      below -= height;
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const step = 960 / Math.max(totals.length, 30);
      const place = { x: slot * step, y: below, width: Math.max(step - 1, 1), height };
      for (const [name, value] of Object.entries(place)) bar.setAttribute(name, value.toFixed(2));
      bar.setAttribute("class", kind);
      return [bar];
    });
  }));
  if (!totals.length) return;
  const end = start + width * Math.max(totals.length, 30);
  const dearest = totals.indexOf(Math.max(...totals));
  const label = `${duration(frame.compile_seconds)} of compiling, most of it at ${clock(start + width * dearest)}`;
  if (byId("timeline").getAttribute("aria-label") !== label) byId("timeline").setAttribute("aria-label", label);
  say("from", clock(start));
  say("scale", `a bar: ${duration(width)}; full height: ${duration(most)} compiling`);
  say("to", clock(end));
}

function showOwn(frame) {
  const parts = Object.entries(frame.overhead);
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  fill("own", frame.overhead, () => [["in all", total], ...parts].flatMap(([part, seconds]) => {
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = PARTS[part] ?? part;
    value.textContent = duration(seconds);
    return [term, value];
  }));
}

// ---------------------------------------------------------------- asking

function show(frame) {
  if (frame.state !== state) { // another program, or the same one anew
    state = frame.state;
    newest = 0;
    byId("happened").replaceChildren();
  }
  for (const part of [showHead, showHappened, showFunctions, showEager, showTimeline, showOwn]) part(frame);
}

async function read(since) {
  const answer = await fetch(`live.json?since=${since}`, { cache: "no-store", credentials: "omit" });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

async function ask() {
  try {
    let frame = await read(newest);
    if (frame.state !== state && newest > 0) frame = await read(0);
    show(frame);
    failures = 0;
    say("state", paused ? "Paused." : "");
  } catch {
    failures += 1;
    say("state", "The program does not answer; trying again.");
  }
  next();
}

function next() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  timer = setTimeout(ask, Math.min(EVERY_MS * 2 ** failures, SLOWEST_MS));
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  say("state", paused ? "Paused." : "");
  if (paused) clearTimeout(timer);
  else ask();
});
byId("all").addEventListener("change", () => {
  for (const made of byId("happened").rows) made.hidden = made.dataset.kind === FIRST && !byId("all").checked;
  byId("none").hidden = [...byId("happened").rows].some((made) => !made.hidden);
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused) ask();
});
ask();
