"use strict";
/* Elements, numbers as text, and charts. All data enter the document as text. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make an HTML element; children that are strings become text. */
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
/** Make an SVG element. */
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

/** A problem is marked by a sign and a word, not only by its colour. */
const problem = (words) => h("span", { class: "problem" }, h("span", { "aria-hidden": "true" }, "⚠ "), words);

const percent = (x) => (x === null ? "–" : `${(100 * x).toFixed(1)}\u00a0%`);
const wholePercent = (x) => (x === null ? "–" : `${(100 * x).toFixed(0)}\u00a0%`);

const number = (x) => x.toLocaleString("en", { maximumSignificantDigits: 4 });

/** Two decimals if there are any; below 1, the first significant digits. */
function money(x) {
  if (Math.abs(x) < 1) return x.toLocaleString("en", { maximumSignificantDigits: 3 });
  const decimals = Number.isInteger(x) ? 0 : 2;
  return x.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** A count; if a double cannot hold it exactly, its first digits. */
function whole(n) {
  if (Number.isSafeInteger(n)) return n.toLocaleString("en");
  const power = Math.floor(Math.log10(n));
  return `${(n / 10 ** power).toFixed(2)} × 10^${power}`;
}

const plural = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Round numbers that divide a range into about n parts. */
function ticks(low, high, n) {
  const rough = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    found.push(+(i * step).toPrecision(12));
  }
  return found;
}

/** A linear scale with margins at both ends; a range of one value gets a width. */
function scale(values, from, to, air) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  const room = (high - low) * air || Math.abs(high) * 0.05 || 1;
  low -= room;
  high += room;
  const place = (value) => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(place, { low, high });
}

// Cividis: evenly from dark to light, also for colour-blind readers.
const CIVIDIS = [
  "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
];

function cividis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const i = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const channel = (colour, k) => parseInt(CIVIDIS[colour].slice(1 + 2 * k, 3 + 2 * k), 16);
  const mix = (k) => Math.round((1 - at + i) * channel(i, k) + (at - i) * channel(i + 1, k));
  return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
}

/** Axes with grid lines and titles around a plot. */
function frame(box, x, y, titles) {
  const nodes = [];
  for (const value of ticks(x.low, x.high, Math.max(Math.floor((box.right - box.left) / 90), 2))) {
    nodes.push(s("line", { class: "grid", x1: x(value), x2: x(value), y1: box.top, y2: box.bottom }));
    const place = { class: "tick", x: x(value), y: box.bottom + 18, "text-anchor": "middle" };
    nodes.push(s("text", place, titles.xText(value)));
  }
  for (const value of ticks(y.low, y.high, Math.max(Math.floor((box.bottom - box.top) / 55), 2))) {
    nodes.push(s("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
    const place = { class: "tick", x: box.left - 8, y: y(value) + 4, "text-anchor": "end" };
    nodes.push(s("text", place, titles.yText(value)));
  }
  nodes.push(s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  nodes.push(s("text", { class: "title", x: box.right, y: box.bottom + 38, "text-anchor": "end" }, titles.x));
  nodes.push(s("text", { class: "title", x: 0, y: 14 }, titles.y));
  return s("g", { "aria-hidden": "true" }, nodes);
}

const canvas = (width, height, attributes, ...children) =>
  s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, ...attributes }, ...children);

/** A line through counts, with its last value as text. */
function lineChart(width, xs, ys, titles) {
  const height = 220;
  const box = { left: 64, right: width - 12, top: 30, bottom: height - 46 };
  const x = scale([0, ...xs], box.left, box.right, 0);
  const y = scale([0, ...ys], box.bottom, box.top, 0.04);
  y.low = 0;
  const path = xs.map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("");
  const [first, last, n] = [ys[0], ys[ys.length - 1], xs[xs.length - 1]].map(whole);
  const label = `${titles.y}: from ${first} to ${last} over ${n} ${titles.x}`;
  return canvas(
    width, height, { role: "img", "aria-label": label },
    frame(box, x, y, titles),
    s("path", { class: "curve", d: path }),
    s("circle", { class: "curve-end", r: 4, cx: x(xs[xs.length - 1]), cy: y(ys[ys.length - 1]) }),
  );
}

/** Round ends of an axis that fits intervals; shares stay between 0 and 1. */
function fitAxis(intervals, share) {
  const ends = intervals.flat().filter((end) => end !== null);
  let [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
  if (high - low < 1e-9) [low, high] = share ? [low - 0.02, high + 0.02] : [low * 0.9, high * 1.1 || 1];
  const steps = ticks(low, high, 4);
  const step = steps.length > 1 ? steps[1] - steps[0] : high - low;
  low = Math.max(Math.floor(low / step + 1e-9) * step, 0);
  high = Math.ceil(high / step - 1e-9) * step;
  return { low, high: share ? Math.min(high, 1) : high };
}

const onAxis = (axis) => (v) => 6 + 128 * Math.min(Math.max((v - axis.low) / (axis.high - axis.low), 0), 1);

/** The ends of an axis, above the intervals that are drawn on it. */
const axisMark = (axis, text) =>
  canvas(
    140, 15, { class: "interval ends", "aria-hidden": "true" },
    s("text", { class: "tick", x: 2, y: 11 }, text(axis.low)),
    s("text", { class: "tick", x: 138, y: 11, "text-anchor": "end" }, text(axis.high)),
  );

/** A figure with its interval on an axis. */
function intervalMark(value, interval, axis) {
  const place = onAxis(axis);
  const [low, high] = interval;
  return canvas(
    140, 14, { class: "interval", "aria-hidden": "true" },
    s("line", { class: "track", x1: 6, x2: 134, y1: 7, y2: 7 }),
    s("line", { class: "whisker", x1: place(low), x2: place(high), y1: 7, y2: 7 }),
    value === null ? null : s("circle", { class: "dot", cx: place(value), cy: 7, r: 4.5 }),
  );
}

const tip = {
  show(lines, x, y) {
    const box = byId("tip");
    box.replaceChildren(...lines.map((line, i) => h(i ? "div" : "strong", null, line)));
    box.hidden = false;
    const room = box.getBoundingClientRect();
    box.style.left = `${Math.max(Math.min(x + 14, innerWidth - room.width - 8), 8)}px`;
    box.style.top = `${y - room.height - 14 > 8 ? y - room.height - 14 : y + 18}px`;
  },
  hide() {
    byId("tip").hidden = true;
  },
};
