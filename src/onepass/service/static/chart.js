// Pictures: curves with bands, shares over time, contributions. Labels stand at what they name.

import { drawing } from "./dom.js";
import { clock, day, fixed, percent, places, short, signed } from "./words.js";

const TOP = 12, BOTTOM = 26, LINE = 17;  // pixels: margins, and a line of text
const LETTER = 7.2;  // pixels of a letter, about
const PIECE = 1000;

const path = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Round numbers, about `count` of them, from low to high.
export function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / PIECE; at += step) found.push(at);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

// Labels that do not cover one another: each as near to its place as the others let it.
export function apart(labels, low, high) {
  const sorted = [...labels].sort((one, other) => one.y - other.y);
  sorted.forEach((label, place) => { label.y = Math.max(label.y, place ? sorted[place - 1].y + LINE : low); });
  let limit = high;
  for (const label of sorted.reverse()) { label.y = Math.min(label.y, limit); limit = label.y - LINE; }
  return labels;
}

function times(begin, end, x, y, width) {
  const span = end - begin, count = width < 230 ? 1 : width < 420 ? 2 : 4;
  const marks = Array.from({ length: count + 1 }, (_, place) => begin + (span * place) / count);
  const text = (at) => (span > 2 * 86400 ? day(at) : clock(at, span < 1200));
  return marks.map((at, place) => drawing("text", {
    x: x(at), y, "text-anchor": place === 0 ? "start" : place === count ? "end" : "middle",
  }, text(at)));
}

function frame(node, height, name) {
  const width = Math.max(node.clientWidth, 240);
  return { width, svg: drawing("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": name }) };
}

// The limits of the first curve are a band, those of the others bars at the end. all: [{kind, label, points: [[time, value, lower, upper], ...]}]; marked: [{time, text}]
export function curves(node, name, all, marked = []) {
  const height = node.clientWidth < 560 ? 250 : 300, { svg, width } = frame(node, height, name);
  const drawn = all.filter((curve) => curve.points.length);
  if (!drawn.length) return node.replaceChildren(svg);
  const room = Math.min(Math.max(...drawn.map((curve) => curve.label.length)) * LETTER + 12, width * 0.42);
  const first = drawn[0].points, begin = first[0][0], end = Math.max(first.at(-1)[0], begin + 1);
  const late = (points, share) => points.slice(Math.floor(points.length * share));
  const seen = drawn.flatMap((curve) => late(curve.points, 0.25).map((point) => point[1]));
  seen.push(...late(first, 0.5).flatMap((point) => [point[2], point[3]]));
  let low = Math.min(...seen), high = Math.max(...seen);
  const pad = Math.max((high - low) * 0.12, 1e-6);
  low -= pad; high += pad;
  const marks = ticks(low, high, 5), left = Math.max(...marks.found.map((at) => at.toFixed(marks.digits).length)) * LETTER + 10;
  const right = width - room, y = (value) => TOP + ((high - value) / (high - low)) * (height - TOP - BOTTOM);
  const x = (time) => left + ((time - begin) / (end - begin)) * (right - left);
  for (const at of marks.found) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: right, y1: y(at), y2: y(at) }),
      drawing("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, fixed(at, marks.digits)));
  }
  svg.append(...times(begin, end, x, height - 6, right - left));
  const inside = drawing("clipPath", { id: `${node.id}-inside` },
    drawing("rect", { x: left, y: TOP - 4, width: right - left + 2, height: height - TOP - BOTTOM + 8 }));
  const clipped = drawing("g", { "clip-path": `url(#${node.id}-inside)` });
  for (const { kind, points } of [...drawn].reverse()) {
    const upper = points.map((point) => [x(point[0]), y(point[3])]), lower = points.map((point) => [x(point[0]), y(point[2])]);
    if (kind === "shown") clipped.append(drawing("path", { class: `band f-${kind}`, d: path([...upper, ...lower.reverse()]) + "Z" }));
    clipped.append(drawing("path", { class: `curve s-${kind}`, d: path(points.map((point) => [x(point[0]), y(point[1])])) }));
  }
  drawn.slice(1).forEach((curve, place) => {
    const [, , lower, upper] = curve.points.at(-1), across = right - 5 - 7 * place;
    clipped.append(drawing("line", { class: `limits s-${curve.kind}`, x1: across, x2: across, y1: y(lower), y2: y(upper) }));
  });
  for (const { time, text } of marked.filter((one) => one.time >= begin && one.time <= end)) {
    clipped.append(drawing("line", { class: "alarm", x1: x(time), x2: x(time), y1: TOP - 4, y2: height - BOTTOM }, drawing("title", {}, text)));
  }
  svg.append(inside, clipped);
  const labels = drawn.map((curve) => ({ y: y(curve.points.at(-1)[1]) + 4, curve }));
  for (const { y: place, curve } of apart(labels, TOP + 4, height - BOTTOM)) {
    svg.append(drawing("text", { class: `t-${curve.kind}${curve.kind === "shown" ? " strong" : ""}`, x: right + 8, y: place },
      short(curve.label, Math.floor((room - 8) / LETTER))));
  }
  node.replaceChildren(svg);
}

// names; rows: [[time from, time to, [share of each name, the rest]], ...]
export function shares(node, name, names, rows) {
  const height = 280, { svg, width } = frame(node, height, name);
  if (!rows.length) return node.replaceChildren(svg);
  const longest = Math.max(...names.map((each) => each.length)) + 5;
  const room = Math.min(longest * LETTER + 14, width * 0.45), right = width - room;
  const begin = rows[0][0], end = Math.max(rows.at(-1)[1], begin + 1);
  const x = (time) => ((time - begin) / (end - begin)) * right, y = (share) => TOP + share * (height - TOP - BOTTOM);
  const under = new Array(rows.length).fill(0), labels = [];
  names.forEach((label, which) => {
    let shape = "", top = [], low = [], ended = begin;
    const close = () => { if (top.length) shape += path([...top, ...low.reverse()]) + "Z"; };
    rows.forEach(([from, to, of], place) => {
      if (from > ended) { close(); top = []; low = []; }  // a time without decisions
      ended = to;
      const before = under[place], after = before + of[which];
      top.push([x(from), y(before)], [x(to), y(before)]);
      low.push([x(from), y(after)], [x(to), y(after)]);
      under[place] = after;
    });
    if (!rows.some(([, , of]) => of[which] > 0)) return;
    const last = rows.at(-1)[2][which], middle = (low.at(-1)[1] + top.at(-1)[1]) / 2;
    close();
    svg.append(drawing("path", { class: `a${which} rim`, d: shape }, drawing("title", {}, label)));
    labels.push({ y: middle + 4, which, text: `${percent(last)} ${label}` });
  });
  for (const { y: place, which, text } of apart(labels, TOP + 8, height - BOTTOM)) {
    svg.append(drawing("rect", { class: `a${which}`, x: right + 5, y: place - 10, width: 4, height: 12, rx: 1 }),
      drawing("text", { class: "t-ink", x: right + 14, y: place }, short(text, Math.floor((room - 14) / LETTER))));
  }
  svg.append(...times(begin, end, x, height - 6, right));
  node.replaceChildren(svg);
}

// terms: [{label, contribution}], the largest first
export function contributions(node, name, terms) {
  const row = 30, height = terms.length * row + 6, { svg, width } = frame(node, height, name);
  const most = Math.max(...terms.map((term) => Math.abs(term.contribution)), 1e-12), digits = places(most);
  const room = Math.min(Math.max(...terms.map((term) => term.label.length)) * LETTER + 8, width * 0.42);
  const number = (digits + 4) * LETTER, sides = [-1, 1].map((side) => Math.max(...terms.map((term) => side * term.contribution), 0));
  const down = sides[0] ? number : 0, up = sides[1] ? number : 0, scale = (width - room - down - up) / (sides[0] + sides[1] || 1);
  const zero = room + down + sides[0] * scale;
  terms.forEach((term, place) => {
    const middle = place * row + row / 2, length = Math.abs(term.contribution) * scale, right = term.contribution >= 0;
    svg.append(drawing("text", { class: "t-ink", x: 0, y: middle + 5 }, short(term.label, Math.floor(room / LETTER))),
      drawing("rect", { class: right ? "up" : "down", x: right ? zero : zero - length, y: middle - 8, width: Math.max(length, 1), height: 16, rx: 2 }),
      drawing("text", { x: right ? zero + length + 6 : zero - length - 6, y: middle + 5, "text-anchor": right ? "start" : "end" },
        signed(term.contribution, digits)));
  });
  svg.append(drawing("line", { class: "grid", x1: zero, x2: zero, y1: 2, y2: height - 2 }));
  node.replaceChildren(svg);
}
