// Who borrows from whom, as ribbons from lenders to borrowers, and the same as a list to read aloud.

import { fillOf, isDark } from "./colour.js";
import { h, svg } from "./dom.js";
import { amount, shortResource } from "./format.js";
import { quotaIndex, shortQuota, state } from "./store.js";

const WIDTH = 330;
const NODE = 9;
const GAP = 12;
const LABEL = 17;
const LEAST = 5;
const MOST = 14;

// All loans, or those of some quotas: one, or a parent and all below it.
export function loans(resource, only = null) {
  const flows = [...state.loans.values()]
    .filter((each) => each.resource === resource && (!only || only.has(each.from) || only.has(each.to)))
    .sort((a, b) => b.amount - a.amount);
  const title = h("h2", {}, "Who borrows from whom");
  const all = flows.reduce((sum, each) => sum + each.amount, 0);
  const beyond = beyondMins(resource, only, flows);
  const free = beyond ? h("p.quiet", {}, `${amount(resource, beyond)} ${shortResource(resource)} ${flows.length ? "more " : ""}borrowed from what no min covers.`) : null;
  if (!flows.length) return h("div", {}, title, free || h("p.quiet", {}, `No ${shortResource(resource)} is borrowed ${only ? "from it, or by it, " : ""}now.`));
  const shown = flows.slice(0, MOST);
  const rest = flows.length - shown.length;
  const list = h("ul.hidden", {}, ...flows.slice(0, 100).map((each) => h("li", {}, `${each.to} borrows ${amount(resource, each.amount)} from ${each.from}`)));
  return h("div", {}, title, h("p.quiet", {}, `${amount(resource, all)} ${shortResource(resource)} of idle min, lent until asked back.`), h("div.sides", { "aria-hidden": "true" }, h("span", {}, "lends"), h("span", {}, "borrows")),
    drawn(shown, resource), rest ? h("p.quiet", {}, `and ${rest} smaller ones`) : null, free, list);
}

// What is borrowed, but from no other quota's min.
function beyondMins(resource, only, flows) {
  const parents = new Set([...state.quotas.values()].map((row) => row.parent));
  const counts = (name) => !parents.has(name) && (!only || only.has(name));
  const lent = flows.reduce((sum, each) => sum + (counts(each.to) ? each.amount : 0), 0);
  let sum = 0;
  for (const [name, row] of state.quotas) if (counts(name)) sum += row.borrowed[resource] || 0;
  return Math.max(0, sum - lent);
}

function drawn(flows, resource) {
  const left = totals(flows, "from");
  const right = totals(flows, "to");
  const all = [...left.values()].reduce((sum, each) => sum + each, 0);
  const rows = Math.max(left.size, right.size);
  const unit = Math.max(60, Math.min(rows * 26, 260)) / all;
  const places = { from: stacked(left, unit), to: stacked(right, unit) };
  const height = Math.max(places.from.height, places.to.height);
  const picture = svg("svg.loans", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "Ribbons from lenders to borrowers; the list below says the same" });
  const dark = isDark();
  for (const { from, to, amount: size } of flows) {
    const [y0, t0] = places.from.next(from, size);
    const [y1, t1] = places.to.next(to, size);
    const middle = WIDTH / 2;
    const path = `M${NODE},${y0} C${middle},${y0} ${middle},${y1} ${WIDTH - NODE},${y1} v${t1} C${middle},${y1 + t1} ${middle},${y0 + t0} ${NODE},${y0 + t0} Z`;
    picture.append(svg("path.ribbon", { d: path, fill: fillOf(quotaIndex(to), dark) }, svg("title", {}, `${to} borrows ${amount(resource, size)} from ${from}`)));
  }
  for (const [side, x, anchor, at] of [["from", 0, "start", 0], ["to", WIDTH - NODE, "end", WIDTH]]) {
    const sums = side === "from" ? left : right;
    for (const [name, { top, size }] of places[side].boxes) {
      picture.append(svg("rect", { x, y: top, width: NODE, height: size, rx: 2, fill: fillOf(quotaIndex(name), dark) }));
      const figure = svg("tspan.figure", {}, amount(resource, sums.get(name)));
      const text = svg("text", { x: at, y: top - 5, "text-anchor": anchor }, svg("title", {}, `${name} ${side === "from" ? "lends" : "borrows"} ${amount(resource, sums.get(name))}`));
      text.append(...(side === "from" ? [`${shortQuota(name, 21)} `, figure] : [figure, ` ${shortQuota(name, 21)}`]));
      picture.append(text);
    }
  }
  return picture;
}

function totals(flows, side) {
  const sums = new Map();
  for (const each of flows) sums.set(each[side], (sums.get(each[side]) || 0) + each.amount);
  return sums;
}

// Boxes below each other, each with room for its name above it; `next` is the part for one more loan.
function stacked(sums, unit) {
  const boxes = new Map();
  const taken = new Map();
  let top = 0;
  for (const [name, sum] of sums) {
    const size = Math.max(sum * unit, LEAST);
    boxes.set(name, { top: top + LABEL, size, sum });
    taken.set(name, 0);
    top += LABEL + size + GAP;
  }
  return {
    boxes,
    height: top,
    next(name, amountOf) {
      const box = boxes.get(name);
      const thick = (amountOf / box.sum) * box.size;
      const y = box.top + taken.get(name);
      taken.set(name, taken.get(name) + thick);
      return [y, thick];
    },
  };
}
