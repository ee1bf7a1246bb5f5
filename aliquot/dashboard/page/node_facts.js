// What is beside the map of nodes: whose the cards are, how the free ones are spread, one node's pods.

import { fillOf, isDark } from "./colour.js";
import { h } from "./dom.js";
import { amounts, plural } from "./format.js";
import { quotaIndex, state } from "./store.js";

const MOST_KEYS = 18;

// What a node's GPUs are, as far as its labels tell.
export const kindOf = (node) => node.model || (node.sliced ? "slices of GPUs" : node.cells.length ? "GPUs of unknown model" : "no GPU");

// The teams of a cell and the thousandths that they have.
export const parts = (cell) => (Array.isArray(cell) ? cell : cell ? [[cell, 1000]] : []);

// Teams with their cards, those with most first; one can be chosen, to see only where it is.
export function teamKeys(nodes, teams, chosen, choose) {
  const has = new Map();
  for (const node of nodes.values()) for (const cell of node.cells) for (const [owner, part] of parts(cell)) has.set(owner - 1, (has.get(owner - 1) || 0) + part / 1000);
  const order = [...has.keys()].sort((a, b) => has.get(b) - has.get(a) || a - b);
  const shown = order.slice(0, MOST_KEYS);
  if (chosen !== null && !shown.includes(chosen)) shown.push(chosen);
  const keys = shown.map((index) => {
    const team = teams.get(index);
    const dot = h("span.dot");
    dot.style.background = fillOf(index, isDark());
    return h("button.key", { type: "button", "aria-pressed": index === chosen ? "true" : "false", onclick: () => choose(index) }, dot, h("span.clamped", { title: team ? team.name : "" }, team ? team.short : "another team"), h("b", {}, Number((has.get(index) || 0).toFixed(1)).toLocaleString("en")));
  });
  if (order.length > MOST_KEYS) keys.push(h("span.quiet", {}, `and ${order.length - MOST_KEYS} more`));
  const open = chosen !== null && teams.get(chosen)?.href;
  if (open) keys.push(h("a.button", { href: open }, "Open quota"));
  return keys;
}

// How many nodes have how many idle cards, of those that take pods: where a big pod could start.
export function fragmentation(nodes) {
  let [cards, idle, blocked, slices] = [0, 0, 0, 0];
  const byIdle = new Map();
  for (const node of nodes.values()) {
    const free = node.cells.filter((cell) => cell === 0).length;
    cards += node.cells.length;
    idle += free;
    if (node.sliced) slices += node.cells.length;
    if (!free || node.sliced) continue;
    if (node.state === "ready") byIdle.set(free, (byIdle.get(free) || 0) + 1);
    else blocked += free;
  }
  const word = !slices ? "card" : slices === cards ? "slice" : "card or slice";
  return { cards, idle, word, element: () => pictured(byIdle, blocked, nodes, slices) };
}

function pictured(byIdle, blocked, nodes, slices) {
  const largest = Math.max(0, ...byIdle.keys());
  const most = Math.max(1, ...byIdle.values());
  const sizes = [...new Set([...nodes.values()].filter((node) => !node.sliced).map((node) => node.cells.length))];
  const columns = largest > 16 ? [...byIdle.keys()].sort((a, b) => a - b) : Array.from({ length: Math.min(16, Math.max(largest, ...sizes)) }, (_, i) => i + 1);
  const bars = columns.map((free) => {
    const count = byIdle.get(free) || 0;
    const bar = h("span.spread-bar");
    bar.style.height = `${(count / most) * 100}%`;
    return h("div.spread-column", { title: `${plural(count, "node")} with ${plural(free, "idle card")}` }, h("span.spread-count", {}, count || ""), h("span.spread-track", {}, bar), h("span.spread-free", {}, free));
  });
  const text = largest
    ? `The largest pod that one node can hold now has ${plural(largest, "card")}: ${plural(byIdle.get(largest), "node")} could.`
    : `No node that takes pods has an idle ${slices ? "whole card" : "card"}.`;
  return [h("h2", {}, "Where idle cards are"), h("p", {}, text), largest ? h("div.spread", { role: "img", "aria-label": `Nodes by idle cards: ${[...byIdle].sort((a, b) => a[0] - b[0]).map(([free, count]) => `${count} with ${free}`).join(", ")}` }, ...bars) : null,
    largest ? h("p.quiet.axis-name", {}, "nodes, by their number of idle cards") : null, blocked ? h("p.note", {}, `${plural(blocked, "idle card")} on nodes that take no pods`) : null,
    slices ? h("p.quiet", {}, "Nodes whose cards are sliced are left out.") : null].filter(Boolean);
}

// One node: its state, what is free, its pods.
export function nodeDetail(name, node, found) {
  if (!node) return [h("h2", {}, name), h("p.quiet", {}, state.nodes.size ? "There is no such node." : "Reading ...")];
  const place = node.places.filter(Boolean).join(" / ");
  const head = [h("h2", {}, name), h("p", {}, `${kindOf(node)}; `, h(node.state === "ready" ? "span" : "span.problem", {}, node.state), `; ${plural(node.pods, "pod")}${place ? `; ${place}` : ""}`)];
  if (!found) return [...head, h("p.quiet", {}, "Enter shows its pods.")];
  head.push(h("p.quiet", {}, `Free: ${amounts(found.free, state.cluster.resources)}`));
  if (!found.pods.length) return [...head, h("p.quiet", {}, "No pod runs here.")];
  return [...head, h("ul.cards", {}, ...found.pods.map((pod) => {
    const dot = h("span.dot");
    dot.style.background = fillOf(pod.quota ? quotaIndex(pod.quota) : state.teams.get(`${pod.pod.split("/")[0]}/`)?.index ?? -1, isDark());
    return h("li", {}, dot, " ", pod.pod, h("div.message", {}, pod.quota ? h("a", { href: `#/quotas/${encodeURIComponent(pod.quota)}` }, pod.quota) : "no quota", `; ${amounts(pod.takes, state.cluster.resources)}`));
  }))];
}
