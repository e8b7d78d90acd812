// Numbers and times, as people read them.

export const plain = (value, digits = 3) =>
  value === null || value === undefined ? "–" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });

export const fixed = (value, places = 3) => (value === null || value === undefined ? "–" : value.toFixed(places).replace("-", "−"));

export const signed = (value, places = 3) => (value > 0 ? "+" : "") + fixed(value, places);

// A gain in percent of what it is above, where that is more than nothing.
export const relative = (gain, base) => {
  if (!(base > 0)) return "";
  const points = 100 * gain / base;
  return ` (${signed(points, Math.abs(points) < 10 ? 1 : 0)}%)`;
};

export const whole = (value) => Math.round(value).toLocaleString("en");

export const percent = (share) =>
  share > 0 && share < 0.01 ? `${(100 * share).toFixed(1)}%` : `${Math.round(100 * share)}%`;

export const bytes = (count) => {
  const units = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) { count /= 1000; at += 1; }
  return `${plain(count)} ${units[at]}`;
};

export const clock = (seconds, exact = false) =>
  new Date(1000 * seconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined });

export const day = (seconds) => new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short" });

export const moment = (seconds) => `${day(seconds)}, ${clock(seconds)}`;

export const lasting = (seconds) => {
  for (const [size, name] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (seconds >= 1.5 * size) return `${Math.round(seconds / size)} ${name}s`;
  }
  return Math.round(seconds) === 1 ? "second" : `${Math.round(seconds)} seconds`;
};

// Decimal places at which a number of the size of `span` has two digits.
export const places = (span) => Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(Math.max(span, 1e-9)))));

export const short = (name, most) => (name.length > most ? name.slice(0, most - 1) + "…" : name);
