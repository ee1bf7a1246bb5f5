// Elements, made and kept up to date without a library.

// h("a.big", {href: "#"}, "text", child): an element with classes, properties and children.
export function h(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElementNS(SVG, tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

// A name that may break after its namespace.
export function breakable(name) {
  const [first, ...rest] = name.split("/");
  return rest.length ? [`${first}/`, document.createElement("wbr"), rest.join("/")] : [name];
}

export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// Children in this order, each made once by its key and kept: what has the focus keeps it.
export class Rows {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.rows = new Map();
  }

  show(items, keyOf) {
    const seen = new Set();
    let place = this.parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      seen.add(key);
      let row = this.rows.get(key);
      if (!row) {
        row = this.make(item);
        this.rows.set(key, row);
      }
      row.update(item);
      if (row.element === place) place = place.nextElementSibling;
      else this.parent.insertBefore(row.element, place);
    }
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
  }
}

const tip = () => document.getElementById("tip");

export function showTip(lines, x, y) {
  const element = tip();
  element.replaceChildren(...lines.map((line, i) => h(i ? "div" : "div.tip-title", {}, line)));
  element.hidden = false;
  const { width, height } = element.getBoundingClientRect();
  element.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  element.style.top = `${Math.max(4, y + 18 + height > innerHeight ? y - height - 10 : y + 18)}px`;
}

export function hideTip() {
  tip().hidden = true;
}
