// Elements without a library: text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

const filled = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};

export const element = (name, attributes = {}, ...children) =>
  filled(document.createElement(name), attributes, children);

export const drawing = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

export const at = (id) => document.getElementById(id);

// Put text where it differs: what is read aloud is only what is new.
export const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export const table = (caption, head, rows) =>
  element("table", {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((text, place) =>
      place ? element("td", {}, text) : element("th", { scope: "row" }, text))))));

// dl: [name, value, more]
export const listed = (node, facts) =>
  node.replaceChildren(...facts.filter(Boolean).map(([name, value, more]) =>
    element("div", {}, element("dt", {}, name),
      element("dd", {}, value, more ? element("span", { class: "more" }, more) : null))));
