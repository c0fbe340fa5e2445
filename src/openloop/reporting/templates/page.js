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
  axisYBand: { labelPadding: 6 },
  axisX: { labelOverlap: true, labelFlush: false, labelSeparation: 6 },
  axisXQuantitative: { tickCount: Math.max(3, Math.floor(width / 100)) },
  legend: { ...look.legend, ...legend(width, names) },
});

// As many columns of a legend as its names leave room for beside the labels of the axis.
function legend(width, names) {
  const room = width - (width < 500 ? 120 : 160);
  const longest = Math.min(200, 7 * Math.max(4, ...names.map((name) => name.length)) + 34);
  const columns = Math.max(1, Math.min(names.length, Math.floor(room / longest)));
  return { columns, labelLimit: columns === 1 ? Math.min(300, width - 70) : Math.min(240, room / columns - 24) };
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
    // The box is one picture with words for it: parts with a role of their own would need words, too.
    for (const part of box.querySelectorAll("svg [role]")) part.removeAttribute("role");
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

// Only what can be scrolled takes part in tabbing, and says that there is more.
function reachable() {
  for (const region of document.querySelectorAll(".scroll")) {
    const wide = region.scrollWidth > region.clientWidth + 1;
    if (wide) region.tabIndex = 0; else region.removeAttribute("tabindex");
    region.classList.toggle("wide", wide);
  }
}
addEventListener("resize", reachable);
for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", reachable);

// What a button did, for eyes and screen readers.
const said = document.getElementById("said");
let silence;
function say(text) {
  said.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => { said.textContent = ""; }, 5000);
}

function button(text, about, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.ariaLabel = about ? `${text}: ${about}` : text;
  made.addEventListener("click", action);
  return made;
}

function tools(...parts) {
  const made = document.createElement("div");
  made.className = "tools";
  made.append(...parts);
  return made;
}

// A browser may have no clipboard, or keep a page from it: then a selection is copied.
async function copy(text, what) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    const before = document.activeElement;
    field.value = text;
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
    before.focus();
  }
  say(done ? `Copied ${what}.` : "This browser does not let the page copy; save the file instead.");
}

function save(content, type, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  download(link, file);
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function download(link, file) {
  link.download = file;
  link.click();
  say(`Saved ${file}.`);
}

const fileOf = (title, suffix) => `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60).replace(/^-|-$/g, "")}.${suffix}`;

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
    const sorter = document.createElement("button");
    sorter.type = "button";
    sorter.append(...head.childNodes);
    head.append(sorter);
    sorter.addEventListener("click", () => {
      sorted(table, column, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
    });
  });
}

// Tables as CSV: numbers in full, and what is in small print in a column of its own. A spreadsheet computes no text.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function field(text) {
  const safe = FORMULA.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const detailOf = (cell) => cell.querySelector("small")?.textContent ?? "";

function textOf(cell) {
  const { value } = cell.dataset;
  if (cell.classList.contains("num") && Number.isFinite(Number(value))) return value;
  const detail = detailOf(cell);
  const text = cell.textContent.trim();
  return detail ? text.slice(0, -detail.length).trim() : text;
}

const shownRows = (table) => [...table.tBodies[0].rows].filter((row) => !row.hidden);

function csv(table) {
  const rows = shownRows(table);
  const heads = [...table.tHead.rows[0].cells];
  const detailed = heads.map((_, column) => rows.some((row) => detailOf(row.cells[column])));
  const spread = (cells, one, other) => cells.flatMap((cell, n) => (detailed[n] ? [one(cell), other(cell)] : [one(cell)]));
  const lines = [spread(heads, textOf, (head) => `${textOf(head)}, in small print`)];
  for (const row of rows) lines.push(spread([...row.cells], textOf, detailOf));
  return lines.map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
}

// The mark at the beginning tells a spreadsheet that the text is UTF-8.
const saveCsv = (text, title) => save(`\ufeff${text}`, "text/csv", fileOf(title, "csv"));

function filter(table, title) {
  const input = document.createElement("input");
  const count = document.createElement("span");
  input.type = "search";
  input.placeholder = "Filter rows";
  input.ariaLabel = `Filter rows: ${title}`;
  count.role = "status";
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    count.textContent = input.value.trim() ? `${shownRows(table).length} of ${table.tBodies[0].rows.length} rows` : "";
  });
  return [input, count];
}

const MANY = 8;
for (const table of document.querySelectorAll("main table")) {
  const region = table.parentElement;
  const title = region.getAttribute("aria-label");
  const long = table.tBodies[0].rows.length > MANY;
  region.before(tools(
    ...(long ? filter(table, title) : []),
    button("Copy CSV", title, () => copy(csv(table), `${shownRows(table).length} rows as CSV`)),
    button("Save CSV", title, () => saveCsv(csv(table), title)),
  ));
}

for (const code of document.querySelectorAll("main pre")) {
  code.after(tools(button("Copy", code.textContent, () => copy(code.textContent, "the command"))));
}

// A chart as a file: in light colours on white, which stand in it instead of variables.
function colourOf(variable) {
  const probe = document.createElement("span");
  probe.style.colorScheme = "light";
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function svgOf(box) {
  const drawing = box.querySelector("svg").cloneNode(true);
  const ground = document.createElementNS(drawing.namespaceURI, "rect");
  const title = document.createElementNS(drawing.namespaceURI, "title");
  for (const [key, value] of Object.entries({ width: "100%", height: "100%", fill: "#ffffff" })) ground.setAttribute(key, value);
  title.textContent = box.ariaLabel;
  drawing.prepend(title, ground);
  const colours = {};
  const text = new XMLSerializer().serializeToString(drawing);
  return text.replace(/var\((--[a-z]+)\)/g, (_, name) => (colours[name] ??= colourOf(name)));
}

async function savePng(box, file) {
  const { width, height } = box.querySelector("svg").getBoundingClientRect();
  const image = new Image(width, height);
  image.src = `data:image/svg+xml,${encodeURIComponent(svgOf(box))}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, "image/png", file));
}

function tableAbove(figure) {
  let above = figure.previousElementSibling;
  while (!above.querySelector("table")) above = above.previousElementSibling;
  return above;
}

// The buttons under a chart, before its table.
function savers(figure, title, ...buttons) {
  const numbers = figure.querySelector("details.numbers");
  const above = figure.classList.contains("above");
  const tables = [...(above ? tableAbove(figure) : figure).querySelectorAll("table")];
  const data = button("Save data", title, () => saveCsv(tables.map(csv).join("\r\n"), title));
  figure.insertBefore(tools(...buttons, ...(tables.length ? [data] : [])), numbers);
}

for (const box of boxes) {
  const figure = box.closest("figure");
  const title = figure.querySelector("figcaption strong")?.textContent ?? document.title;
  savers(
    figure, title,
    button("Save SVG", title, () => save(svgOf(box), "image/svg+xml", fileOf(title, "svg"))),
    button("Save PNG", title, () => savePng(box, fileOf(title, "png"))),
  );
}

for (const picture of document.querySelectorAll("figure > img")) {
  const link = Object.assign(document.createElement("a"), { href: picture.src });
  const title = picture.nextElementSibling.textContent;
  savers(picture.parentElement, title, button("Save SVG", title, () => download(link, fileOf(title, "svg"))));
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

// Print: everything is open but the numbers behind charts.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open], .numbers)")];
  for (const fold of closed) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });

drawAll();
