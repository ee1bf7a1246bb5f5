// One quota: its bars, its history, its pods in the order of importance, who waits and why.

import { Bar, legend, quotaFigures, scaleOf, words } from "./bars.js";
import { fillOf, isDark } from "./colour.js";
import { h, svg } from "./dom.js";
import { ago, amount, amounts, natural, plural, shortResource } from "./format.js";
import { loans } from "./loans.js";
import { ask, mainResource, shareName, shortQuota, state } from "./store.js";

const REFRESH = 2000;
const MOST_WAITING = 6;
const SEEN = ["quotas", "cluster", "loans", "theme", "waiting", "resource"];

export class Quota {
  constructor(name) {
    this.name = name;
    this.found = null;
    this.asked = 0;
    this.bars = h("section.panel.quota-bars", { "aria-label": "Its bounds" });
    this.facts = h("div.facts-row");
    this.path = h("nav.path", { "aria-label": "Where it is in the tree" });
    this.history = h("section.panel", { "aria-label": "Its history" }, h("h2", {}, "Lately"), h("p.quiet", {}, "Asking ..."));
    this.pods = h("section", { "aria-label": "Its pods" });
    this.waiting = h("section", { "aria-label": "Who waits" });
    this.flows = h("section.panel", { "aria-label": "Who borrows from whom" });
    this.dot = h("span.dot.big");
    this.legend = h("div");
    this.element = h("div.view", {}, this.path, h("div.bar-tools", {}, h("h1", {}, this.dot, h("span.clamped", { title: name }, name)), h("a.button", { href: `#/what-if/${encodeURIComponent(name)}` }, "What if ..."), this.legend), this.facts,
      h("div.columns", {}, h("div.wide", {}, this.bars, this.waiting, this.pods), h("div.side", {}, this.history, this.flows)));
    this.ask();
  }

  async ask() {
    this.asked = Date.now();
    try {
      this.found = await ask(`api/quota?name=${encodeURIComponent(this.name)}`);
      if (state.quotas.has(this.name)) this.show();
    } catch (error) {
      this.pods.replaceChildren(h("p.problem", {}, error.message));
    }
  }

  close() {
    clearTimeout(this.timer);
  }

  update(changed) {
    const row = state.quotas.get(this.name);
    this.path.replaceChildren(...path(this.name));
    if (!row) {
      if (state.cluster) this.facts.replaceChildren(h("span.problem", {}, `There is no quota ${this.name}.`));
      return;
    }
    if (!SEEN.some((part) => changed.has(part))) return;
    if (this.found && (!this.shown || changed.has("theme"))) this.show();
    this.dot.style.background = fillOf(row.index, isDark());
    if (!this.legend.firstChild) this.legend.replaceChildren(legend());
    this.bars.replaceChildren(...bounded(row).map((resource) => bounds(row, resource)));
    this.facts.replaceChildren(...facts(this.name, row));
    this.flows.replaceChildren(loans(mainResource(), new Set(below(this.name))));
    this.waiting.replaceChildren(...waiting(this.name, row));
    clearTimeout(this.timer);
    const due = Math.max(0, this.asked + REFRESH - Date.now());
    this.timer = setTimeout(() => this.ask(), due);
  }

  show() {
    this.shown = true;
    const { pods, history } = this.found;
    const order = state.cluster?.resources;
    const over = pods.findIndex((pod) => pod.capacity === "over-quota");
    const rows = [];
    pods.forEach((pod, i) => {
      if (i === over) rows.push(h("tr.line", {}, h("td", { colspan: "5" }, i ? "Over-quota from here: these go first when others take back their min" : "All are over-quota: they go first when others take back their min")));
      rows.push(h("tr", {}, h("td.pod", {}, pod.pod), h("td", {}, h("a", { href: `#/nodes/${encodeURIComponent(pod.node)}` }, pod.node)), h("td.number", {}, pod.priority), h("td.number", {}, ago(pod.age)), h("td", {}, amounts(pod.takes, order))));
    });
    const heads = ["Pod", "Node", "Priority", "Runs", "Takes"];
    const inQuota = over < 0 ? pods.length : over;
    const parent = [...state.quotas.values()].some((row) => row.parent === this.name);
    this.pods.hidden = parent && !rows.length;
    this.pods.replaceChildren(h("h2", {}, "Pods, the most important first ", rows.length ? h("span.quiet", {}, `${inQuota} in-quota, ${pods.length - inQuota} over-quota${this.found.more ? " of those shown" : ""}`) : ""), rows.length
      ? h("div.sheet", {}, h("table.pods", {}, h("thead", {}, h("tr", {}, ...heads.map((each, i) => h(i === 2 || i === 3 ? "th.number" : "th", { scope: "col" }, each)))), h("tbody", {}, ...rows)))
      : h("p.quiet", {}, "No pod of it runs."), this.found.more ? h("p.quiet", {}, `and ${plural(this.found.more, "pod")} more`) : "");
    this.history.replaceChildren(h("h2", {}, "Lately"), curve(history, state.quotas.get(this.name)));
  }
}

function path(name) {
  const found = [];
  for (let at = state.quotas.get(name)?.parent, steps = 0; at && steps < 20; at = state.quotas.get(at)?.parent, steps += 1) found.unshift(at);
  return [h("a", { href: "#/quotas" }, "All quotas"), ...found.flatMap((each) => [" / ", h("a", { href: `#/quotas/${encodeURIComponent(each)}` }, each)])];
}

// The resources that it bounds or uses, those that it bounds first.
function bounded(row) {
  const names = [...new Set([...Object.keys(row.min), ...Object.keys(row.max), ...Object.keys(row.used)])];
  const named = (each) => each in row.min || each in row.max;
  return names.filter((each) => each !== "pods" || named(each)).filter((each) => named(each) || row.used[each]).sort((a, b) => named(b) - named(a) || order(a) - order(b) || natural(a, b));
}

const order = (name) => (state.cluster.resources.indexOf(name) + 1000) % 1000;

function bounds(row, resource) {
  const bar = new Bar();
  bar.update(row, resource, scaleOf(row, resource, state.cluster.total[resource] || 0) || 1);
  const { used, min, max, borrowed, lent, request, share } = quotaFigures(row, resource);
  const of = (value) => amount(resource, value);
  const figures = [["used", of(used)], ["min", of(min)], ["max", of(max)], [(shareName() || "").toLowerCase(), share === undefined ? null : of(share)], ["borrowed", borrowed ? of(borrowed) : null], ["lent", lent ? of(lent) : null], ["asked for", request > used ? `${of(request - used)} more` : null]];
  return h("div.quota-bar", {}, h("span.what", { title: resource }, shortResource(resource)), bar.element,
    h("dl.figures-row", {}, ...figures.filter(([name, text]) => name && text !== null).flatMap(([name, text]) => [h("div", {}, h("dt", {}, name), h("dd", {}, text))])),
    row.inForce && (row.inForce[resource] ?? min) < min ? h("p.note", {}, words(row, resource)) : null);
}

function facts(name, row) {
  const children = [...state.quotas].filter(([, each]) => each.parent === name).map(([each]) => each).sort(natural);
  const namespaces = [...state.namespaces.values()].filter((each) => each.queue === name).map((each) => `${each.namespace} (weight ${each.weight})`);
  const all = below(name);
  const sum = (what) => all.reduce((found, each) => found + state.quotas.get(each)[what], 0).toLocaleString("en");
  const found = [h("span", {}, h("b", {}, sum("running")), " running"), h("span", {}, h("b", {}, sum("waiting")), " waiting"), children.length ? h("span", {}, "in all quotas below it") : null].filter(Boolean);
  if (row.tree) found.push(h("span", {}, `tree ${row.tree}`));
  if (namespaces.length) found.push(h("span", {}, `namespaces ${namespaces.join(", ")}`));
  if (children.length) found.push(h("span", {}, "children ", ...children.slice(0, 12).flatMap((each, i) => [i ? ", " : "", h("a", { href: `#/quotas/${encodeURIComponent(each)}`, title: each }, shortQuota(each, 40))]), children.length > 12 ? ` and ${children.length - 12} more` : ""));
  return found;
}

// A quota and all quotas below it.
function below(name) {
  const found = [name];
  for (let i = 0; i < found.length; i += 1) for (const [each, row] of state.quotas) if (row.parent === found[i]) found.push(each);
  return found;
}

function waiting(name, row) {
  if (!row.waiting) return [];
  const rows = [...state.waiting.values()].filter((each) => each.quota === name).sort((a, b) => a.order - b.order).slice(0, MOST_WAITING);
  return [h("h2", {}, "Who waits"), h("ul.cards", {}, ...rows.map((each) => h("li", {}, h("a", { href: `#/waiting/${encodeURIComponent(each.pod)}` }, each.gang || each.pod),
    h("span.quiet", {}, each.pods > 1 ? (each.gang ? ` gang of ${each.pods}` : ` and ${each.pods - 1} like it`) : ""), " ", h("span.reason", {}, each.reason || "due"), h("div.message.clamped", { title: each.message }, each.message || "")))),
  h("p.quiet", {}, h("a", { href: "#/waiting" }, `All that waits`), `: ${plural(row.waiting, "pod")} of it`)];
}

export function curve(history, row) {
  const { times, used, min, resource } = history;
  if (times.length < 2) return h("p.quiet", {}, state.cluster?.still ? "Files are of one moment: there is no curve." : "The curve begins when the page is served: it needs a few seconds.");
  const [width, height, left, foot] = [330, 150, 4, 18];
  const most = Math.max(...used, ...min, 1) * 1.08;
  const span = times[times.length - 1] - times[0] || 1;
  const x = (t) => left + ((t - times[0]) / span) * (width - left);
  const y = (v) => height - foot - (v / most) * (height - foot - 16);
  const step = (values) => values.map((v, i) => `${i ? `H${x(times[i]).toFixed(1)}V` : `M${left},`}${y(v).toFixed(1)}`).join("");
  const colour = fillOf(row ? row.index : -1, isDark());
  const now = used[used.length - 1];
  return h("div", {}, svg("svg.curve", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Used ${shortResource(resource)}: from ${amount(resource, used[0])} to ${amount(resource, now)} in ${ago(span)}` },
    svg("path", { d: `${step(used)}V${height - foot}H${left}Z`, fill: colour, opacity: "0.28" }),
    svg("path.curve-used", { d: step(used), stroke: colour }),
    svg("path.curve-min", { d: step(min) }),
    svg("text.axis", { x: left, y: 11 }, `${amount(resource, Math.round(most / 1.08))} ${shortResource(resource)}`),
    svg("text.axis", { x: left, y: height - 4 }, `${ago(span)} ago`),
    svg("text.axis", { x: width, y: height - 4, "text-anchor": "end" }, "now")),
  h("div.legend", { "aria-hidden": "true" }, h("span.legend-item", {}, swatch(colour), `used, ${amount(resource, now)} now`), h("span.legend-item", {}, h("span.swatch.dashed"), "min")));
}

function swatch(colour) {
  const found = h("span.swatch");
  found.style.background = colour;
  return found;
}
