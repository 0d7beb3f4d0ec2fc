"use strict";

// Comfort only: everything can be read without it. It moves and hides what is there, and makes no element out of text
// but the buttons that sort.

const byId = (id) => document.getElementById(id);
const functions = () => [...document.querySelectorAll("details.function")];

// ---------------------------------------------------------------- sorting

const table = byId("functions-table");

function value(row, column, numeric) {
  const found = row.cells[column].dataset.value ?? "";
  return numeric ? Number(found) : found;
}

function sort(head) {
  const numeric = head.dataset.kind === "number";
  const column = head.cellIndex;
  const was = head.getAttribute("aria-sort");
  const order = was ? (was === "descending" ? "ascending" : "descending") : numeric ? "descending" : "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [value(row, column, numeric), row]);
  rows.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

if (table) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
    if (button.textContent === "compiling") head.setAttribute("aria-sort", "descending"); // as it comes
  }
}

// ---------------------------------------------------------------- finding

byId("controls").hidden = false;

byId("filter").addEventListener("input", () => {
  const wanted = byId("filter").value.trim().toLowerCase();
  const matches = (element) => (element.dataset.name ?? "").toLowerCase().includes(wanted);
  const rows = table ? [...table.tBodies[0].rows] : [];
  for (const element of [...rows, ...functions()]) element.hidden = !matches(element);
  const shown = rows.filter((row) => !row.hidden).length;
  if (byId("shown")) byId("shown").textContent = wanted ? `${shown} of ${rows.length} functions` : "";
});

byId("open-all").addEventListener("click", () => {
  const open = byId("open-all").getAttribute("aria-pressed") !== "true";
  byId("open-all").setAttribute("aria-pressed", String(open));
  byId("open-all").textContent = open ? "Close all keys" : "Open all keys";
  for (const element of functions()) element.open = open;
});
if (!functions().length) byId("open-all").hidden = true;

function follow() {
  const found = location.hash ? byId(location.hash.slice(1)) : null;
  if (!found || !found.matches("details.function")) return;
  found.open = true;
  found.querySelector("summary").focus();
}
addEventListener("hashchange", follow);
follow();
