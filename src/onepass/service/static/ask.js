// JSON from this service; the key stays in this tab.

const KEY = "onepass key";

export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

export const keyed = () => sessionStorage.getItem(KEY) !== null;

export const keep = (key) => sessionStorage.setItem(KEY, key);

export async function ask(path) {
  const key = sessionStorage.getItem(KEY);
  const answer = await fetch(path, { headers: key ? { authorization: `Bearer ${key}` } : {}, cache: "no-store" });
  const said = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, said.error ? said.error.message : `status ${answer.status}`);
  return said;
}
