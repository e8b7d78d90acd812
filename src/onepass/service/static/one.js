// One decision: what was shown and why, and everything the log has about it.

import { ask } from "./ask.js";
import { contributions } from "./chart.js";
import { at, element } from "./dom.js";
import { clock, fixed, percent, plain, short } from "./words.js";

const TERMS = 6;
let held = null;

function words(record) {
  if (record.kind === "decision") return `decided${record.deferred ? ", deferred" : ""}`;
  if (record.kind === "outcome") return `${record.name || "outcome"} ${plain(record.value)}${record.request ? ` (${short(record.request, 24)})` : ""}`;
  if (record.kind === "join" && ["correction", "censored"].includes(record.how)) return `corrected by ${record.rewards.map((one) => plain(one)).join(", ")}`;
  if (record.kind === "join" && record.how === "outcomes") return "learned its outcomes beside the reward";
  if (record.kind === "join") return `learned as ${record.rewards.map((one) => plain(one)).join(", ")} (${record.how || "earliest"})`;
  if (record.kind === "activation") return "activated";
  return record.kind;
}

function story(found) {
  const made = found.decision, why = found.explanation;
  const rest = made.ranking.filter((one) => one.arm !== made.arm).slice(0, 2);
  const parts = [element("p", { class: "story" }, element("strong", {}, made.arm), ` was shown, with probability ${percent(made.propensity)}`,
    rest.length ? `; ${rest.map((one) => `${one.arm} ${percent(one.probability)}`).join(", ")}.` : ".")];
  if (why) {
    const scale = why.link ? `its score (before the ${why.link} link)` : "the reward";
    parts.push(element("p", { class: "about" }, `Now the model expects ${fixed(why.mean, 3)} of it, give or take ${fixed(why.width, 3)}. What ${scale} is made of:`),
      element("div", { class: "picture", id: "one-picture" }));
  } else if (found.unexplained) parts.push(element("p", { class: "about" }, `No explanation: ${found.unexplained}.`));
  return parts;
}

function draw() {
  const node = at("one-picture"), why = held && held.explanation;
  if (!node || !why) return;
  const terms = why.terms.slice(0, TERMS).map((term) => ({ label: term.name.includes("=") && term.value === 1 ? term.name : `${term.name} = ${plain(term.value)}`, contribution: term.contribution }));
  contributions(node, `What each feature adds: ${terms.map((term) => `${term.label} ${fixed(term.contribution, 3)}`).join(", ")}`, terms);
}

export async function look(loop, id) {
  try {
    held = await ask(`/v1/${encodeURIComponent(loop)}/event?id=${encodeURIComponent(id)}`);
  } catch (error) {
    held = null;
    at("one").replaceChildren(element("p", { class: "story refused" }, error.message));
    return;
  }
  const trail = element("ol", { class: "trail" }, held.records.map((record) =>
    element("li", {}, element("time", {}, clock(record.time / 1e6, true)), words(record))));
  at("one").replaceChildren(element("p", { class: "about story" }, `id ${held.id}`), ...(held.decision ? story(held) : []), trail);
  draw();
}

new ResizeObserver(draw).observe(at("one"));
