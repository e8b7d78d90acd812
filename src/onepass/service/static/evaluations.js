// Evaluations of other policies on this log, with their verdicts; nothing where the service has none.

import { ask } from "./ask.js";
import { at, table } from "./dom.js";
import { plain } from "./words.js";

const told = (value) => (typeof value === "number" ? plain(value) : value === null || value === undefined ? "–" : String(value));

export async function evaluations(loop) {
  let found = [];
  try {
    const said = await ask(`/v1/${encodeURIComponent(loop)}/evaluations`);
    found = Array.isArray(said) ? said : said.evaluations || [];
  } catch { found = []; }
  at("evaluations-section").hidden = found.length === 0;
  if (!found.length) return;
  const names = Object.keys(found[0]).filter((name) => found.some((one) => typeof one[name] !== "object"));
  at("evaluations").replaceChildren(table("Policies, by what they would have earned on this log", names, found.map((one) => names.map((name) => told(one[name])))));
}
