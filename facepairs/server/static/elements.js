/** Small helpers to build parts of the page. */

export const byId = (id) => document.getElementById(id);

/** Return a new element with attributes and children. */
export function element(name, attributes = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...children);
  return found;
}

/** Return a new element of SVG with attributes. */
export function shape(name, attributes) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
}

/** Fill a `dl` with rows of [label, text]; a row without a label continues the one before. */
export function fillRows(list, rows) {
  const groups = [];
  for (const [label, text] of rows) {
    if (!label && groups.length) groups.at(-1).append(element("dd", {}, text));
    else groups.push(element("div", {}, element("dt", {}, label), element("dd", {}, text)));
  }
  list.replaceChildren(...groups);
}

/** Return a table with a row of heads. */
export function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((cells) =>
    element("tr", {}, ...cells.map((cell) => element("td", {}, cell))),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
