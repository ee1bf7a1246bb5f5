// What would happen if: a quota's min or max moved, or there were more nodes. The engine is asked
// before anything is written; nothing is ever written from here.

import { Bar, quotaFigures } from "./bars.js";
import { h } from "./dom.js";
import { amount, natural, plural, shortResource } from "./format.js";
import { ask, mainResource, state } from "./store.js";

const PAUSE = 350;
const MOST_LISTED = 40;

export class WhatIf {
  constructor(quota) {
    this.changes = new Map();
    this.controls = h("section.panel", { "aria-label": "Changes" });
    this.answer = h("section.wide", { "aria-label": "What would happen", "aria-live": "polite" }, hint());
    this.yaml = h("pre.yaml", { tabindex: "0", "aria-label": "The change as YAML" });
    this.copy = h("button.primary", { type: "button", disabled: true, onclick: () => this.copyYaml() }, "Copy as YAML");
    this.quota = h("select", { id: "what-quota", onchange: () => this.showBounds() });
    this.field = h("div", {}, h("label.field", { for: "what-quota" }, "Quota"), this.quota);
    this.bounds = h("div");
    this.count = h("input", { id: "what-count", type: "number", min: "0", max: "1000", value: "0", oninput: () => this.later() });
    this.like = h("select", { id: "what-like", onchange: () => this.later() });
    this.moved = h("ul.plain.moved");
    this.nodes = h("div", {}, h("h2.apart", {}, "More nodes"), h("div.row", {}, h("label", { for: "what-count" }, "Add"), this.count, h("label", { for: "what-like" }, "like"), this.like));
    this.controls.append(this.field, this.bounds, this.nodes,
      this.moved, h("div.row", {}, this.copy, h("button", { type: "button", onclick: () => this.reset() }, "Reset")), this.yaml);
    this.wanted = quota || null;
    this.element = h("div.view", {}, h("div.bar-tools", {}, h("h1", {}, "What if"), h("p.quiet", {}, "Drag a bound, or add nodes. Nothing is written.")), h("div.columns.reverse", {}, this.controls, this.answer));
  }

  update(changed) {
    if (!state.cluster) return;
    const names = [...state.quotas.keys()].sort(natural);
    this.field.hidden = this.bounds.hidden = !names.length;
    this.nodes.hidden = !state.nodes.size;
    this.controls.hidden = !names.length && !state.nodes.size;
    this.element.lastChild.classList.toggle("alone", this.controls.hidden);
    if (!this.changes.size && this.hinted !== this.controls.hidden) {
      this.hinted = this.controls.hidden;
      this.answer.replaceChildren(this.hinted ? nothing() : hint());
    }
    if (names.length !== this.quota.options.length) {
      const chosen = this.quota.value || this.wanted || busiest(names);
      this.quota.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
      if (names.includes(chosen)) this.quota.value = chosen;
      this.showBounds();
    }
    if (this.like.options.length === 0 && state.nodes.size) {
      const kinds = new Map();
      for (const [name, node] of state.nodes) {
        const kind = node.cells.length ? `${node.cells.length} × ${node.model || "GPU"}` : "no GPU";
        if (!kinds.has(kind)) kinds.set(kind, [name, node.cells.length]);
      }
      const most = [...kinds].sort(([, [, a]], [, [, b]]) => b - a);
      this.like.replaceChildren(...most.map(([kind, [name]]) => h("option", { value: name }, `${name} (${kind})`)));
    }
    if (changed.has("resource")) this.showBounds();
    else if (changed.has("quotas")) this.refresh?.();
  }

  showBounds() {
    const row = state.quotas.get(this.quota.value);
    if (!row) return;
    history.replaceState(null, "", `#/what-if/${encodeURIComponent(this.quota.value)}`);
    const total = state.cluster.total;
    const bounded = state.cluster.resources.filter((each) => each in row.min || each in row.max);
    const names = [...new Set([...bounded, ...(bounded.length ? [] : [mainResource()])])].filter((each) => total[each]);
    const groups = names.map((resource) => this.resource(this.quota.value, resource));
    this.refresh = () => groups.forEach((each) => each.show());
    this.bounds.replaceChildren(...groups.map((each) => each.element));
  }

  // A quota's bar in one resource, with a slider for each bound on the same scale.
  resource(quota, resource) {
    const row = () => state.quotas.get(quota) || state.quotas.values().next().value;
    const { used, min, max } = quotaFigures(row(), resource);
    const most = Math.max(state.cluster.total[resource], used, min, max || 0);
    const bar = new Bar();
    const show = () => {
      const now = row();
      const value = (bound, before) => this.changes.get(keyOf(quota, bound, resource)) ?? before;
      const low = value("min", now.min[resource]);
      const high = value("max", now.max[resource]);
      const uses = now.used[resource] || 0;
      bar.update({ ...now, min: { ...now.min, [resource]: low }, max: high === undefined ? now.max : { ...now.max, [resource]: high }, borrowed: { [resource]: Math.max(uses - (low || 0), 0) }, lent: {} }, resource, most);
    };
    const sliders = ["min", "max"].map((bound) => this.slider(quota, row(), resource, bound, most, show));
    show();
    return { show, element: h("div.what-bar", {}, h("h2", {}, shortResource(resource), h("span.quiet", {}, ` of ${amount(resource, state.cluster.total[resource])}`)), h("div.slider", {}, h("span.quiet", {}, "used"), bar.element, h("span.number", {}, amount(resource, used))), ...sliders) };
  }

  slider(quota, row, resource, bound, most, show) {
    const { min, max } = quotaFigures(row, resource);
    const key = keyOf(quota, bound, resource);
    const before = bound === "min" ? min : max;
    const now = this.changes.get(key) ?? before;
    const text = h("output", {}, now === undefined ? "unlimited" : amount(resource, now));
    const id = `what-${bound}-${resource.replace(/\W/g, "-")}`;
    const input = h("input", { id, type: "range", min: "0", max: String(most), step: String(stepOf(most)), value: String(now ?? most), oninput: () => {
      const value = Number(input.value);
      text.textContent = amount(resource, value);
      if (value === before) this.changes.delete(key);
      else this.changes.set(key, value);
      text.classList.toggle("changed", value !== before);
      show();
      this.later();
    } });
    text.classList.toggle("changed", this.changes.has(key));
    return h("div.slider", {}, h("label", { for: id }, bound, h("span.hidden", {}, ` ${shortResource(resource)}`)), input, text);
  }

  reset() {
    this.changes.clear();
    this.count.value = "0";
    this.showBounds();
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PAUSE);
  }

  close() {
    clearTimeout(this.timer);
  }

  request() {
    const quotas = {};
    for (const [key, value] of this.changes) {
      const [name, bound, resource] = JSON.parse(key);
      ((quotas[name] ??= {})[bound] ??= {})[resource] = value;
    }
    return { quotas, addNodes: Number(this.count.value) || 0, like: this.like.value || null };
  }

  async ask() {
    const request = this.request();
    const nothing = !Object.keys(request.quotas).length && !request.addNodes;
    const number = (this.number = (this.number || 0) + 1);
    this.copy.disabled = nothing;
    this.tellMoved(request);
    if (nothing) {
      this.yaml.textContent = "";
      this.answer.replaceChildren(hint());
      return;
    }
    this.answer.classList.add("asking");
    try {
      const found = await ask("api/what-if", request);
      if (number !== this.number) return;
      this.yaml.textContent = found.yaml || "";
      this.answer.replaceChildren(...answer(found));
    } catch (error) {
      if (number === this.number) this.answer.replaceChildren(h("p.problem", {}, error.message));
    }
    if (number === this.number) this.answer.classList.remove("asking");
  }

  // All that is changed, also of quotas that are not shown.
  tellMoved(request) {
    const items = [...this.changes].map(([key, value]) => {
      const [name, bound, resource] = JSON.parse(key);
      const before = state.quotas.get(name)?.[bound][resource];
      return `${name}: ${bound} ${shortResource(resource)} ${amount(resource, bound === "min" ? before || 0 : before)} → ${amount(resource, value)}`;
    });
    if (request.addNodes) items.push(`${plural(request.addNodes, "node")} more like ${request.like}`);
    this.moved.replaceChildren(...items.map((each) => h("li", {}, each)));
  }

  async copyYaml() {
    const before = "Copy as YAML";
    try {
      await navigator.clipboard.writeText(this.yaml.textContent);
      this.copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(this.yaml);
      this.copy.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (this.copy.textContent = before), 1500);
  }
}

const keyOf = (...parts) => JSON.stringify(parts);

const hint = () => h("div.empty", {}, h("h2", {}, "Move something"), h("p", {}, "The engine plays the change on a copy of the cluster, and says at once who would start and who would be evicted, for whom. The change can then be copied as YAML."));

const nothing = () => h("div.empty", {}, h("h2", {}, "Nothing to move yet"), h("p", {}, "As soon as there are quotas or nodes, their bounds can be dragged and nodes added here."));

// The quota that waits most, or uses most: it is the one that a user wonders about.
function busiest(names) {
  const resource = mainResource();
  const weight = (name) => [state.quotas.get(name).waiting, state.quotas.get(name).used[resource] || 0];
  return [...names].sort((a, b) => weight(b)[0] - weight(a)[0] || weight(b)[1] - weight(a)[1] || natural(a, b))[0];
}

const stepOf = (most) => {
  if (most <= 1000) return 1;
  return 10 ** Math.max(0, Math.floor(Math.log10(most)) - 2);
};

function answer({ starts, evictions, quotas, pending }) {
  const waiting = (each) => (Array.isArray(each) ? each.length : each);
  const tile = (kind, number, text) => h(`div.outcome.${kind}`, {}, h("b", {}, number), h("span", {}, text));
  const title = `${plural(starts.length, "pod")} would start, ${evictions.length} would be evicted`;
  const found = [h("h2.hidden", {}, title), h("div.outcomes", { "aria-hidden": "true" }, tile(starts.length ? "good" : "none", starts.length, starts.length === 1 ? "pod would start" : "pods would start"), tile(evictions.length ? "bad" : "none", evictions.length, "would be evicted"),
    tile("none", `${waiting(pending.before)} → ${waiting(pending.after)}`, "wait"))];
  if (!starts.length && !evictions.length) found.push(h("p.quiet", {}, waiting(pending.before) ? "No pod that waits could start by this alone: its row under Waiting says what would help." : "Nothing waits that this could start, and nothing has to go for it."));
  if (evictions.length) found.push(h("h2", {}, "Evicted"), list(evictions, (each) => [each.pod, each.for ? h("span", {}, h("span.quiet", {}, " for "), each.for) : "", " ", h("span.reason", {}, each.reason)]));
  if (starts.length) found.push(h("h2", {}, "Started"), list(starts, (each) => [each.pod, h("span.quiet", {}, ` on ${each.node}`)]));
  const changed = quotas.map((each) => [each, moves(each)]).filter(([, texts]) => texts.length);
  if (changed.length) {
    found.push(h("h2", {}, "Quotas"), h("div.sheet", {}, h("table", {}, h("thead", {}, h("tr", {}, ...["Quota", "What it uses"].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, ...changed.map(([each, texts]) => h("tr", {}, h("th", { scope: "row" }, each.name), h("td", {}, texts.join(", "))))))));
  }
  return found;
}

// What a quota uses before and after, in the resources in which that differs, the main one first.
function moves({ before, after }) {
  const of = (figures, name) => figures?.used?.[name] ?? "0";
  const names = new Set([...Object.keys(before?.used || {}), ...Object.keys(after?.used || {})]);
  const rank = (name) => (state.cluster.resources.indexOf(name) + 1000) % 1000;
  return [...names].filter((name) => name !== "pods" && of(before, name) !== of(after, name)).sort((a, b) => rank(a) - rank(b)).map((name) => `${of(before, name)} → ${of(after, name)} ${shortResource(name)}`);
}

function list(rows, show) {
  const shown = rows.slice(0, MOST_LISTED).map((each) => h("li", {}, ...show(each)));
  if (rows.length > MOST_LISTED) shown.push(h("li.quiet", {}, `and ${rows.length - MOST_LISTED} more`));
  return h("ul.cards", {}, ...shown);
}
