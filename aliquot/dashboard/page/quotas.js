// All quotas, as a tree with bars; who borrows from whom beside it, GPU quotas below.

import { Bar, legend, quotaFigures, resourceChoice, scaleOf } from "./bars.js";
import { fillOf, isDark } from "./colour.js";
import { breakable, h, Rows, setText } from "./dom.js";
import { amount, natural, percent, plural, shortResource } from "./format.js";
import { loans } from "./loans.js";
import { chooseResource, hasBranches, mainResource, quotaTree, shareName, state } from "./store.js";

const most = (figure) => (resource) => (a, b) => figure(state.quotas.get(b), resource) - figure(state.quotas.get(a), resource) || natural(a, b);
const ORDERS = {
  quota: () => natural,
  used: most((row, resource) => row.used[resource] || 0),
  min: most((row, resource) => row.min[resource] || 0),
  max: most((row, resource) => row.max[resource] ?? Infinity),
  share: most((row, resource) => row.runtime?.[resource] || 0),
  borrowed: most((row, resource) => row.borrowed[resource] || 0),
  lent: most((row, resource) => row.lent[resource] || 0),
  pods: most((row) => row.running),
  waiting: most((row) => row.waiting),
};
const COLUMNS = ["used", "min", "max", "share", "borrowed", "lent", "pods", "waiting"];
const SEEN = ["quotas", "resource", "namespaces", "theme"];

export class Quotas {
  constructor() {
    this.order = "quota";
    this.closed = new Set();
    this.choice = h("div");
    this.legend = h("div");
    this.body = h("tbody");
    this.empty = h("div.empty", { hidden: true }, h("h2", {}, "No quotas yet"), h("p", {}, "Create an ElasticQuota or a Queue, and it is shown here at once."));
    this.heads = new Map(["quota", "", ...COLUMNS].map((name) => [name, this.head(name)]));
    this.table = h("table.quotas", {}, h("caption.hidden", {}, "Quotas: used, min and max"), h("thead", {}, h("tr", {}, ...this.heads.values())), this.body);
    this.rows = new Rows(this.body, (item) => new KINDS[item.kind](item, this));
    this.flows = h("section.panel", { "aria-label": "Who borrows from whom" });
    this.cards = h("section.gpu-quotas", { "aria-label": "GPU quotas" });
    this.branches = h("button.plain-button", { type: "button", hidden: true, onclick: () => this.closeAll() });
    this.element = h("div.view", {}, h("div.bar-tools", {}, h("h1", {}, "Quotas"), this.choice, this.branches, this.legend),
      h("div.columns", {}, h("div.wide", {}, h("div.sheet", {}, this.table), this.empty, this.cards), this.flows));
  }

  head(name) {
    if (!name) return h("th.bar-cell", { scope: "col" }, h("span.hidden", {}, "Bar"));
    const button = h("button.sort", { type: "button", onclick: () => this.sort(name) }, name[0].toUpperCase() + name.slice(1));
    return h(name === "quota" ? "th" : `th.number.${name}`, { scope: "col" }, button);
  }

  sort(order) {
    this.order = order;
    this.update(new Set(["quotas"]));
  }

  closeAll() {
    if (this.closed.size) this.closed.clear();
    else for (const row of state.quotas.values()) if (row.parent) this.closed.add(row.parent);
    this.update(new Set(["quotas"]));
  }

  toggle(name) {
    if (!this.closed.delete(name)) this.closed.add(name);
    this.update(new Set(["quotas"]));
  }

  update(changed) {
    if (!state.cluster) return;
    const resource = mainResource();
    const choices = JSON.stringify([state.cluster.resources, resource, state.cluster.policy]);
    if (this.choices !== choices) {
      this.choices = choices;
      this.choice.replaceChildren(resourceChoice(state.cluster.resources, resource, chooseResource));
      this.legend.replaceChildren(legend());
    }
    this.flows.hidden = this.choice.hidden = this.legend.hidden = state.quotas.size === 0;
    this.flows.parentElement.classList.toggle("alone", this.flows.hidden);
    if (["loans", "resource", "theme"].some((part) => changed.has(part))) this.flows.replaceChildren(loans(resource));
    if (changed.has("gpuQuotas")) {
      this.cards.replaceChildren(...gpuQuotas());
      this.empty.hidden = state.quotas.size > 0 || state.gpuQuotas.size > 0;
    }
    if (!SEEN.some((part) => changed.has(part))) return;
    this.showHeads();
    const items = this.items(resource);
    this.rows.show(items, (item) => item.key);
    this.empty.hidden = state.quotas.size > 0 || state.gpuQuotas.size > 0;
    this.table.parentElement.hidden = state.quotas.size === 0;
  }

  showHeads() {
    const share = shareName();
    setText(this.heads.get("share").firstChild, share || "");
    this.table.classList.toggle("unshared", !share);
    for (const [name, head] of this.heads) {
      if (name === this.order) head.setAttribute("aria-sort", name === "quota" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    this.branches.hidden = !hasBranches();
    setText(this.branches, this.closed.size ? "Open all" : "Close all");
  }

  // Quotas, under the heads of their trees if there are several, with the namespaces of queues.
  items(resource) {
    const quotas = quotaTree(ORDERS[this.order](resource), this.closed);
    const trees = new Set(quotas.map(({ row }) => row.tree || ""));
    const scales = scalesOf(quotas, resource);
    const within = new Map();
    for (const each of state.namespaces.values()) within.set(each.queue, [...(within.get(each.queue) || []), each]);
    const dark = isDark();
    const found = [];
    let tree = null;
    for (const item of quotas) {
      if (trees.size > 1 && !item.depth && (item.row.tree || "") !== tree) {
        tree = item.row.tree || "";
        found.push({ kind: "tree", key: `tree ${tree}`, tree });
      }
      const scale = scales.get(item.name);
      found.push({ kind: "quota", key: item.name, ...item, resource, scale, dark });
      for (const each of within.get(item.name) || []) {
        found.push({ kind: "namespace", key: `${item.name} ${each.namespace}`, depth: item.depth + 1, row: each, of: item.row, resource, scale });
      }
    }
    return found;
  }
}

// Quotas of one level have one scale, so that their bars can be compared.
function scalesOf(items, resource) {
  const largest = new Map();
  const total = state.cluster.total[resource] || 0;
  for (const { row, depth } of items) largest.set(depth, Math.max(largest.get(depth) || 0, scaleOf(row, resource, total)));
  return new Map(items.map((item) => [item.name, largest.get(item.depth) || 1]));
}

class QuotaRow {
  constructor({ name }, view) {
    this.bar = new Bar();
    this.fold = h("button.fold", { type: "button", "aria-label": `children of ${name}`, onclick: () => view.toggle(name) });
    this.link = h("a.clamped", { href: `#/quotas/${encodeURIComponent(name)}`, title: name }, ...breakable(name));
    this.swatch = h("span.dot");
    this.name = h("div.name", {}, this.fold, this.swatch, this.link);
    this.cells = COLUMNS.map((each) => h(`td.number.${each}`));
    this.element = h("tr", {}, h("th", { scope: "row" }, this.name), h("td.bar-cell", {}, this.bar.element), ...this.cells);
  }

  update({ row, depth, leaf, closed, resource, scale, dark }) {
    const look = `${depth}/${leaf}/${closed}/${resource}/${scale}/${dark}`;
    if (row === this.row && look === this.look) return;
    [this.row, this.look] = [row, look];
    this.name.style.setProperty("--depth", depth);
    this.element.classList.toggle("branch", !leaf);
    this.fold.hidden = leaf;
    setText(this.fold, closed ? "▸" : "▾");
    this.fold.setAttribute("aria-expanded", String(!closed));
    this.swatch.style.background = fillOf(row.index, dark);
    this.bar.update(row, resource, scale);
    const { used, min, max, borrowed, lent, share } = quotaFigures(row, resource);
    const some = (value) => (value ? amount(resource, value) : "");
    const texts = [amount(resource, used), amount(resource, min), amount(resource, max), share === undefined ? "" : amount(resource, share), some(borrowed), some(lent), row.running || "", row.waiting || ""];
    this.cells.forEach((cell, i) => setText(cell, texts[i]));
    this.cells[7].title = row.waiting ? `${plural(row.waiting, "pod")} waiting` : "";
  }
}

class NamespaceRow {
  constructor({ row }) {
    this.bar = h("span.bar-own");
    this.name = h("div.name", {}, h("span", {}, row.namespace), h("span.quiet", {}, ` weight ${row.weight}`));
    this.used = h("td.number");
    this.share = h("td.number", { colspan: "7" });
    this.element = h("tr.namespace", {}, h("th", { scope: "row" }, this.name), h("td.bar-cell", {}, h("div.bar.thin", {}, this.bar)), this.used, this.share);
  }

  update({ row, of, depth, resource, scale }) {
    this.name.style.setProperty("--depth", depth);
    const used = row.used[resource] || 0;
    this.bar.style.width = `${(used / scale) * 100}%`;
    this.bar.style.background = fillOf(of.index, isDark());
    setText(this.name.lastChild, `weight ${row.weight}`);
    setText(this.used, amount(resource, used));
    setText(this.share, `dominant share ${percent(row.share, 1) || "0%"}`);
  }
}

class TreeRow {
  constructor({ tree }) {
    this.element = h("tr.tree", {}, h("th", { scope: "rowgroup", colspan: "10" }, tree ? `Tree ${tree}` : "No tree of its own"));
  }

  update() {}
}

const KINDS = { quota: QuotaRow, namespace: NamespaceRow, tree: TreeRow };

// GPU quotas: figures of TensorFusion's kind, each with its total.
function gpuQuotas() {
  if (!state.gpuQuotas.size) return [];
  const rows = [...state.gpuQuotas].sort(([a], [b]) => natural(a, b)).map(([name, row]) => h("tr", {}, h("th", { scope: "row" }, name),
    h("td", {}, h("div.figures", {}, ...Object.entries(row.figures).map(([what, [used, top]]) => figure(what, used, top)))),
    h("td", {}, row.problems.length ? h("ul.plain", {}, ...row.problems.map((each) => h("li", {}, h("span.reason.bad", {}, each.type), h("div.message", {}, each.message)))) : h("span.reason.good", {}, "within its totals"))));
  return [h("h2", {}, "GPU quotas"), h("div.sheet", {}, h("table", {}, h("thead", {}, h("tr", {}, ...["Quota", "Used of total", "State"].map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, ...rows)))];
}

function figure(what, used, top) {
  const [kind, resource] = what.includes(".") ? what.split(".") : ["", what];
  const fill = h(used > (top ?? Infinity) ? "span.bar-bad" : "span.bar-own");
  fill.style.width = `${top ? Math.min(1, used / top) * 100 : 0}%`;
  const bar = top === null ? h("span.quiet.no-total", {}, "no total") : h("div.bar.thin", { "aria-hidden": "true" }, fill);
  return h("div.figure", {}, h("span", {}, `${kind} ${shortResource(resource)}`), bar, h("span.number", {}, `${amount(resource, used)}${top === null ? "" : ` of ${amount(resource, top)}`}`));
}
