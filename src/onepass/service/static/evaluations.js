// Evaluations of other policies on this log, the newest first: a sentence for each policy, and its numbers.

import { ask } from "./ask.js";
import { at, element, table } from "./dom.js";
import { clock, day, fixed, places, signed, whole } from "./words.js";

const MOST = 3;  // evaluations that are shown
const WORDS = { ok: "known", wide: "too wide to tell", refused: "not to be believed", failed: "failed" };

const span = (limits, say, digits) => (limits ? `${say(limits[0], digits)} to ${say(limits[1], digits)}` : "–");

function one(found) {
  const head = element("h3", {}, `${found.id}, ${day(found.created)}, ${clock(found.created)}`);
  if (found.status !== "done") {
    return element("div", {}, head, element("p", { class: "about" },
      found.status === "failed" ? `Failed: ${found.why}` : `${found.status}, ${whole(found.rows)} decisions so far`));
  }
  const widest = Math.max(...found.policies.map((each) => (each.limits ? each.limits[1] - each.limits[0] : 0)));
  const digits = places(widest || 1) + 1;
  const rows = found.policies.map((each) => [each.name, each.better ? "better" : WORDS[each.verdict] || each.verdict,
    fixed(each.value, digits), span(each.limits, fixed, digits), span(each.gain_limits, signed, digits)]);
  return element("div", {}, head, element("ul", {}, found.policies.map((each) => element("li", {}, element("strong", {}, each.name), `: ${each.sentence}`))),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Evaluation ${found.id}, as a table` },
      table("What each policy would have earned a decision", ["Policy", "Verdict", "Value", "Limits", "Above what was shown"], rows)));
}

export async function evaluations(loop) {
  let found = [];
  try {
    found = (await ask(`/v1/${encodeURIComponent(loop)}/evaluations`)).evaluations;
  } catch { found = []; }
  at("evaluations-section").hidden = found.length === 0;
  at("evaluations").replaceChildren(...found.slice(0, MOST).map(one));
}
