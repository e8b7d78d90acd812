// What is it doing now, and is it worth it: asked every two seconds, drawn when it is here.

import { ask, keep, keyed } from "./ask.js";
import { curves, shares } from "./chart.js";
import { at, element, listed, say, table } from "./dom.js";
import { evaluations } from "./evaluations.js";
import { look } from "./one.js";
import { bytes, clock, day, fixed, lasting, moment, percent, places, plain, relative, signed, whole } from "./words.js";

const EVERY = 2000;  // milliseconds
const LATELY = 5;  // pieces of the time
const ROWS = 12;  // of a table
const WORDS = {
  yes: "Yes, so far", better: "Better than chance.", no: "Not so far", open: "Not decided yet.", none: "Nothing is learned yet.",
  unknowable: "This log cannot tell.", same: "Nothing to compare.",
};

let loop = decodeURIComponent(location.pathname.slice(1)), last = null, chosen = false, turn = 0;

function facts(found) {
  const value = found.value, numbers = found.numbers;
  const digits = value ? places(value.shown[2] - value.shown[1]) : 3, between = (one) => `${fixed(one[1], digits)} to ${fixed(one[2], digits)}`;
  const recent = found.pieces.filter((piece) => piece[3] !== null).slice(-LATELY);
  const lately = recent.length ? `, lately ${fixed(recent.reduce((sum, piece) => sum + piece[3], 0) / recent.length, digits)}` : "";
  const above = (one) => `${signed(one[0], digits)}${relative(one[0], value.shown[0] - one[0])}`;
  const gain = (one) => `${signed(one[1], digits)} to ${signed(one[2], digits)} reward a decision`;
  listed(at("facts"), [
    value && ["Reward a decision", fixed(value.shown[0], digits), between(value.shown) + lately],
    value && [found.first === null ? "Above the first arm" : `Above always ${found.first}`, above(value.over_first), gain(value.over_first)],
    value && ["Above each as likely", above(value.over_even), gain(value.over_even)],
    ["Decisions", whole(found.counts.decision || 0), `${plain(found.rate)} a second`],
    ["Spent on exploring", percent(found.apart), `of decisions; about ${plain(found.price, 2)} a decision`],
    ["Rewards awaited", whole(numbers.waiting), `${whole(numbers.rounds)} learned`],
  ]);
}

// The first request, to be copied into a terminal, while nothing is decided.
function start(found) {
  at("start").hidden = !found.example;
  if (!found.example) return;
  const body = JSON.stringify(found.example.body).replaceAll("'", "'\\''");
  const key = keyed() ? ` -H "authorization: Bearer $ONEPASS_KEY"` : "";
  say(at("start-command"), `curl -H 'content-type: application/json'${key} '${location.origin}${found.example.path}' -d '${body}'`);
}

function state(found) {
  const node = at("state");
  const known = found.trouble ? ["bad", `Trouble: ${found.trouble}`]
    : found.read < 1 ? ["wait", `Reading its log: ${percent(found.read)}`]
      : ["good", `${found.mode}, ${found.numbers.lag > 10 ? "learning behind" : "learning"}`];
  node.dataset.state = known[0];
  say(node, known[1]);
}

// Pieces that have values, as curves.
function value(found) {
  const first = found.first === null ? "the first" : found.first, narrow = at("value").clientWidth < 560;
  const named = [["shown", "what is shown"], ["first", `always ${first}`], ["even", "each as likely"]];
  const brief = ["shown", first, "any arm"];
  const points = found.pieces.map((piece, place) => [Math.min(found.begin + (place + 1) * found.width, found.last), piece[4]]).filter((one) => one[1]);
  const digits = found.value ? places(found.value.shown[2] - found.value.shown[1]) : 3;
  const all = named.map(([kind, label], which) => ({
    kind, points: points.map(([time, known]) => [time, ...known[which]]),
    label: points.length ? `${fixed(points.at(-1)[1][which][0], digits)} ${narrow ? brief[which] : label}` : label,
  }));
  const alarms = found.drift.latest.map(([time, more]) => ({ time, text: `Drift alarm, ${moment(time)}: ${more ? "more" : "less"} than expected` }));
  curves(at("value"), `Curves of the reward a decision. Now: ${all.map((one) => one.label).join(", ")}. ${alarms.map((one) => one.text).join(". ")}`, all, alarms);
  say(at("value-about"), points.length
    ? `Averages since ${day(found.begin)}, ${clock(found.begin)}. Band and bars are limits of ${percent(found.level)} that hold at all times together: look as often as you like.${alarms.length ? " Upright lines: drift alarms." : ""}`
    : "Values appear when the first rewards are learned.");
  const step = Math.max(1, Math.ceil(points.length / ROWS));
  const rows = points.filter((_, place) => (points.length - 1 - place) % step === 0);
  at("value-table").replaceChildren(table(`Averages so far, with limits of ${percent(found.level)}`, ["Until", ...named.map((one) => one[1])],
    rows.map(([time, known]) => [clock(time, true), ...known.map((one) => `${fixed(one[0], digits)} (${fixed(one[1], digits)} to ${fixed(one[2], digits)})`)])));
}

function arms(found) {
  const rest = found.pieces.some((piece) => piece[0] > piece[1].reduce((sum, count) => sum + count, 0));
  const names = rest ? [...found.names, "others"] : found.names;
  const joined = Math.max(1, Math.ceil(found.pieces.length / 30)), rows = [];
  for (let place = 0; place < found.pieces.length; place += joined) {
    const part = found.pieces.slice(place, place + joined), count = part.reduce((sum, piece) => sum + piece[0], 0);
    if (!count) continue;
    const of = found.names.map((_, which) => part.reduce((sum, piece) => sum + piece[1][which], 0) / count);
    const from = found.begin + place * found.width;
    rows.push([from, Math.min(from + part.length * found.width, Math.max(found.last, from + 1)), rest ? [...of, 1 - of.reduce((sum, one) => sum + one, 0)] : of]);
  }
  say(at("shares-about"), `How often each was shown; numbers are of the last ${lasting(joined * found.width)}.`);
  shares(at("shares"), `Shares of ${found.arms ?? "very many"} arms over time`, names, rows);
  const step = Math.max(1, Math.ceil(rows.length / ROWS));
  at("shares-table").replaceChildren(table("Shares of the arms", ["From", ...names],
    rows.filter((_, place) => (rows.length - 1 - place) % step === 0).map(([from, , of]) => [clock(from, true), ...of.map(percent)])));
}

// Rewards that left what the model expected: when last, and how often that would be chance.
function drifted(drift) {
  const chance = `by chance one in ${whole(drift.every)} decisions at most, on average`, last = drift.latest.at(-1);
  return last ? `the last at ${moment(last[0])}: ${last[1] ? "more" : "less"} was earned than the model expected; ${chance}` : chance;
}

function health(found) {
  const numbers = found.numbers, model = found.model, counts = found.counts;
  listed(at("health"), [
    ["Model", model.recipe, `${bytes(model.memory)} of memory`],
    model.error_bound === null ? null : ["Certified error", plain(model.error_bound),
      model.error_bound === 0 ? "the model is exact" : "no eigenvalue of the design is off by more"],
    model.trust ? ["Trust in the start", `${percent(model.trust[0])} to ${percent(model.trust[1])}`, "weight of the warm start, least and largest of all arms"] : null,
    ["Drift alarms", found.drift.alarms ? whole(found.drift.alarms) : "none", drifted(found.drift)],
    numbers.alarms ? ["Forgotten", `${whole(numbers.alarms)} times`, "by the model itself: what it knew held no more"] : null,
    ["Behind", numbers.lag ? `${whole(numbers.lag)} ${numbers.lag === 1 ? "commit" : "commits"}` : "nothing", `log at ${whole(numbers.last)}, learned to ${whole(numbers.through)}`],
    ["Outcomes", whole(counts.outcome || 0), `${whole(numbers.late)} too late${numbers.corrected ? `, ${whole(numbers.corrected)} corrected what was learned` : ""}`],
    ["No outcome in time", counts.join ? percent((counts.default || 0) / counts.join) : "–", "of the decisions joined, which get the default"],
    ["Settings", `version ${found.settings}`, `mode ${found.mode}`],
  ]);
}

// What budgets have spent, how the loop stands beside its baseline, and the answer of its A/B test.
function accounts(found) {
  const guard = found.baseline, rows = Object.entries(found.budgets).map(([name, one]) =>
    [`Spent: ${name}`, plain(one.spent, 6), `${plain(one.left, 4)} left by now; price ${plain(one.price)} of reward a unit; ${one.on_course ? "on course" : "over its leash"}`]);
  if (guard) {
    rows.push(["Share of the bandit", percent(guard.share), `${whole(guard.deviations)} of ${whole(guard.decisions)} decisions deviated from the baseline`],
      ["Reward so far", plain(guard.reward, 5), `the baseline at most ${plain(guard.baseline, 5)}; slack ${plain(guard.slack)}`],
      ...Object.entries(guard.guardrails).map(([name, one]) =>
        [`Guardrail: ${name}`, one.stopped ? "broken" : "holds", one.stopped ? "the baseline decides alone" : `evidence against it ${plain(one.evidence)}, ${plain(one.needed)} would stop`]));
  }
  const study = found.ab_test;
  if (study) {
    rows.push(["A/B test", study.enough ? "may stop" : "goes on", `${study.sentence} ${whole(study.decisions)} decisions with a reward`],
      ...study.contrasts.map((one) => [`${one.arm} less ${one.other}`, signed(one.gain, 4), `${fixed(one.limits[0], 4)} to ${fixed(one.limits[1], 4)}, at any time`]));
  }
  at("accounts-section").hidden = !rows.length;
  listed(at("accounts"), rows);
}

function draw(found) {
  at("content").hidden = false;
  const word = at("verdict");
  word.dataset.word = found.verdict;
  const gain = found.verdict === "yes" || found.verdict === "no" ? found.value.over_first : null;
  say(word, gain ? `${WORDS[found.verdict]}: ${signed(gain[0], places(gain[2] - gain[1]) + 1)} reward a decision${relative(gain[0], found.value.shown[0] - gain[0])}.` : WORDS[found.verdict]);
  say(at("asked"), `${found.loop}: is it worth it?`);
  say(at("sentence"), found.sentence);
  at("notes").replaceChildren(...found.notes.map((note) => element("li", {}, note)));
  start(found);
  facts(found);
  state(found);
  value(found);
  arms(found);
  accounts(found);
  health(found);
  at("latest").replaceChildren(...found.latest.map((id) => element("option", { value: id })));
  say(at("footer"), `Everything here is computed from this service’s own log. ${clock(found.now, true)}.`);
}

async function evermore() {
  if (!document.hidden) {
    try {
      const found = await ask(`/v1/${encodeURIComponent(loop)}/overview`);
      last = found;
      at("key").hidden = true;
      draw(found);
      if (!chosen && found.latest.length && turn % 5 === 0) await look(loop, found.latest.at(-1));
      if (turn % 5 === 0) await evaluations(loop);
      turn += 1;
    } catch (error) { trouble(error); }
  }
  setTimeout(evermore, EVERY);
}

function trouble(error) {
  const asked = error.status === 401 || error.status === 403;
  at("state").dataset.state = asked ? "wait" : "bad";
  say(at("state"), asked ? "A key is needed" : error.status ? error.message : "The service does not answer");
  if (asked && at("key").hidden) {
    at("key").hidden = false;
    at("key-field").focus();
  }
  if (asked && sessionStorage.length) say(at("key-said"), error.message);
}

async function begin() {
  try {
    const { loops } = await ask("/v1");
    loop = loop || loops[0] || "";
    at("loops").replaceChildren(...loops.map((name) => element("li", {},
      element("a", { href: `/${encodeURIComponent(name)}`, "aria-current": name === loop ? "page" : null }, name))));
    document.title = loop ? `${loop} – onepass` : "onepass";
    if (!loop) throw Object.assign(new Error("a key is needed"), { status: 401 });
  } catch (error) { trouble(error); return false; }
  return true;
}

at("key").addEventListener("submit", async (event) => {
  event.preventDefault();
  keep(at("key-field").value.trim());
  at("key-field").value = "";
  location.reload();
});

at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  chosen = true;
  look(loop, at("find-field").value.trim());
});

new ResizeObserver(() => { if (last) { value(last); arms(last); } }).observe(at("main"));
if (await begin()) evermore();
