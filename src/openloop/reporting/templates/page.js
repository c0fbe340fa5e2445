"use strict";
// Charts: drawn as SVG whose colours are the style sheet's variables, so that light, dark and print need no redrawing.
const css = (name) => `var(--${name})`;
const font = getComputedStyle(document.body).fontFamily;
const look = {
  aria: false,
  background: "transparent",
  font,
  view: { stroke: null },
  title: { color: css("ink"), subtitleColor: css("muted") },
  axis: {
    labelColor: css("muted"), titleColor: css("muted"), gridColor: css("grid"), domainColor: css("line"),
    tickColor: css("line"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
  },
  legend: { labelColor: css("ink"), titleColor: css("ink"), labelFontSize: 12, orient: "bottom", symbolOpacity: 1 },
  text: { color: css("ink") },
};
const fitted = (width, names) => ({
  ...look,
  axis: { ...look.axis, labelLimit: width < 500 ? 110 : 200 },
  axisX: { labelOverlap: true, labelFlush: false, labelSeparation: 6 },
  axisXQuantitative: { tickCount: Math.max(3, Math.floor(width / 100)) },
  legend: { ...look.legend, ...legend(width, names) },
});

// As many columns of a legend as its names leave room for beside the labels of the axis.
function legend(width, names) {
  const room = width - (width < 500 ? 120 : 160);
  const longest = Math.min(200, 7 * Math.max(4, ...names.map((name) => name.length)) + 34);
  const columns = Math.max(1, Math.min(names.length, Math.floor(room / longest)));
  return { columns, labelLimit: Math.min(240, room / columns - 24) };
}

function namesOf(node) {
  if (node === null || typeof node !== "object") return [];
  if (node.color && node.color.scale && node.color.scale.domain) return node.color.scale.domain.map(String);
  for (const inner of Object.values(node)) {
    const found = namesOf(inner);
    if (found.length) return found;
  }
  return [];
}

function wrapped(text, length) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= length) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines.length > 1 ? lines : text;
}

// A closed <details> has no width: its nearest shown ancestor does.
function widthOf(box) {
  let shown = box;
  while (shown && !shown.clientWidth) shown = shown.parentElement;
  const style = getComputedStyle(shown);
  return shown.clientWidth - (shown === box ? 0 : parseFloat(style.paddingLeft) + parseFloat(style.paddingRight));
}

// On a narrow screen long names leave most of it to the chart itself, and titles of axes take two lines.
function narrowed(node, width) {
  if (Array.isArray(node)) return node.map((inner) => narrowed(inner, width));
  if (node === null || typeof node !== "object") return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, narrowed(inner, width)]));
  if (typeof copy.labelLimit === "number") copy.labelLimit = Math.min(copy.labelLimit, width * 0.33);
  if (typeof copy.title === "string") copy.title = wrapped(copy.title, (0.6 * width) / 6);
  return copy;
}

async function draw(box) {
  const width = widthOf(box);
  const given = JSON.parse(box.nextElementSibling.textContent);
  const whole = box.classList.contains("whole");
  const autosize = { type: "fit-x", contains: "padding" };
  const spec = whole ? given : { ...narrowed(given, width), width, autosize };
  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: whole ? look : fitted(width, namesOf(spec)),
    defaultStyle: false, tooltip: { theme: "custom" },
  };
  try {
    await vegaEmbed(box, spec, options);
    box.dataset.width = width;
  } catch (error) {
    box.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
}

const boxes = [...document.querySelectorAll(".chart")];

async function drawAll() {
  for (const box of boxes) if (Math.abs((box.dataset.width || 0) - widthOf(box)) > 8) await draw(box);
  reachable();
  document.documentElement.dataset.drawn = "true";
}

let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (!matchMedia("print").matches) drawAll(); }, 200);
});
for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", drawAll);
drawAll();

// Only what can be scrolled takes part in tabbing.
function reachable() {
  for (const region of document.querySelectorAll(".scroll")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0; else region.removeAttribute("tabindex");
  }
}
addEventListener("resize", reachable);
for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", reachable);

// Tables: a button in every heading of a column.
function sorted(table, column, direction) {
  const number = table.rows[0].cells[column].classList.contains("num");
  const value = (row) => {
    const text = row.cells[column].dataset.value;
    if (!number) return text;
    return text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
  };
  const body = table.tBodies[0];
  const sign = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (number ? (a === b ? 0 : a < b ? -1 : 1) : a.localeCompare(b));
  body.append(...[...body.rows].sort((a, b) => sign * compare(value(a), value(b))));
  for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
}

for (const table of document.querySelectorAll("main table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      sorted(table, column, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
    });
  });
}

reachable();

// Light and dark.
const theme = document.getElementById("theme");
const isDark = () => (document.documentElement.dataset.theme
  ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.ariaLabel = `${theme.textContent} colours`; };
if (CSS.supports("color", "light-dark(#000, #fff)")) {
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; name(); });
}

// Print: everything is open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const fold of closed) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
