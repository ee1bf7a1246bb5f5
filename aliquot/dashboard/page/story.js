// What happened: for each quota what it used over time, and on it starts, ends, changes of bounds, and
// evictions with an arrow to the claim that they were for. The slider goes back in time.

import { fillOf, isDark } from "./colour.js";
import { h, Rows, setText, svg } from "./dom.js";
import { ago, amount, clock, natural, plural, shortResource } from "./format.js";
import { History } from "./past.js";
import { mainResource, quotaIndex, shortQuota, state } from "./store.js";

const MOST_LANES = 14;
const LANE = 46;
const LABEL = 170;
const MOST_EVENTS = 1500;
const MOST_LISTED = 120;
const TOGETHER = 2;
const SPANS = [["5 min", 300], ["15 min", 900], ["1 h", 3600], ["all", Infinity]];

export class Story {
  constructor() {
    this.at = null;
    this.span = Infinity;
    this.picture = h("div.story");
    this.slider = h("input.scrub", { type: "range", min: "0", max: "1000", value: "1000", "aria-label": "Go back in time", oninput: () => this.scrub() });
    this.moment = h("output.moment");
    this.now = h("button", { type: "button", hidden: true, onclick: () => this.follow() }, "Now");
    this.more = h("p.quiet.more", { hidden: true });
    this.board = h("div.sheet", {}, this.picture, h("div.scrub-row", {}, h("div.moments", {}, this.moment, this.now), this.slider), this.more);
    this.past = h("section.panel", { "aria-label": "At that moment" });
    this.list = h("ol.events.sheet");
    this.events = new Rows(this.list, (item) => new EventRow(item));
    this.empty = h("div.empty", { hidden: true }, h("h2", {}, "Nothing has happened yet"), h("p"));
    this.choice = h("div.choice", { role: "group", "aria-label": "How far back" }, ...SPANS.map(([name, span]) => h("button", { type: "button", "aria-pressed": String(span === this.span), onclick: (event) => this.zoom(span, event.target) }, name)));
    const item = (name, text) => h("span.legend-item", {}, h(`span.sign.${name}`), text);
    this.legend = h("div.legend", { "aria-hidden": "true" }, item("start", "start"), item("end", "end"), item("evict", "eviction, and the claim that it was for"), item("change", "quota changed"), item("low", "min"));
    this.element = h("div.view", {}, h("div.bar-tools", {}, h("h1", {}, "Story"), this.choice, this.legend),
      this.board, h("div.columns", {}, h("div.wide", {}, h("h2", {}, "Latest first"), this.list, this.empty), this.past));
    this.history = new History();
    this.history.load().then(() => this.update(new Set(["story"])), () => {});
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.picture);
  }

  close() {
    this.resize.disconnect();
  }

  get relative() {
    return state.cluster?.virtual;
  }

  zoom(span, button) {
    this.span = span;
    for (const each of this.choice.children) each.setAttribute("aria-pressed", String(each === button));
    this.update(new Set(["story"]));
  }

  update(changed) {
    if (!state.cluster) return;
    if (changed.has("quotas") || changed.has("cluster")) this.history.note();
    if (!["story", "cluster", "theme", "resource"].some((part) => changed.has(part))) return;
    this.read();
    this.draw();
    this.tellList();
    this.tellPast();
  }

  // The events of the shown span, and its ends.
  read() {
    const evicted = new Set(state.story.filter((each) => each.kind === "evict").map((each) => each.pod));
    const all = state.story.filter((each) => each.kind !== "end" || !evicted.has(each.pod)).sort((a, b) => a.at - b.at);
    const now = Math.max(state.cluster.now, all.length ? all[all.length - 1].at : 0);
    const first = Math.min(all.length ? all[0].at : now, this.history.from ?? now);
    this.to = now;
    this.from = Math.max(first, now - this.span);
    this.still = this.to - this.from < 0.5;
    if (this.to - this.from < 10) this.to = this.from + 10;
    this.told = all.filter((each) => each.at >= this.from).slice(-MOST_EVENTS);
  }

  lanes() {
    const busy = new Map();
    for (const each of this.told) busy.set(each.quota || "", (busy.get(each.quota || "") || 0) + (each.kind === "start" || each.kind === "end" ? 1 : 20));
    const parents = new Set([...state.quotas.values()].map((row) => row.parent));
    const names = new Set([...busy.keys(), ...this.history.names().filter((name) => !parents.has(name))]);
    const order = [...names].sort((a, b) => (busy.get(b) || 0) - (busy.get(a) || 0) || natural(a, b));
    return { shown: order.slice(0, MOST_LANES).sort(natural), more: Math.max(0, order.length - MOST_LANES) };
  }

  draw() {
    if (!this.told) return;
    const { shown, more } = this.lanes();
    this.board.hidden = this.choice.hidden = this.legend.hidden = this.still || !shown.length;
    if (this.board.hidden) return;
    const width = Math.max(320, this.picture.clientWidth || 900);
    const label = width < 600 ? 84 : LABEL;
    this.board.style.setProperty("--label", `${label}px`);
    const height = shown.length * LANE + 26;
    const x = (t) => label + (Math.max(0, Math.min(1, (t - this.from) / (this.to - this.from)))) * (width - label - 14);
    const top = (quota) => shown.indexOf(quota) * LANE;
    const root = svg("svg.timeline", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${plural(this.told.length, "event")}; the list below says the same` });
    const resource = this.history.resource;
    const most = Math.max(1, ...shown.map((name) => this.history.most(name, this.from)), ...shown.map((name) => state.quotas.get(name)?.min[resource] || 0));
    shown.forEach((quota) => root.append(this.lane(quota, { top: top(quota), width, label, x, most, resource })));
    const starts = startsByPod(this.told);
    const marks = svg("g");
    const arrows = svg("g.eviction");
    for (const each of this.told) {
      const quota = each.quota || "";
      if (!shown.includes(quota)) continue;
      const [cx, cy] = [x(each.at), top(quota) + LANE - 13];
      const title = svg("title", {}, `${clock(each.at, this.relative)} ${told(each)}`);
      if (each.kind === "evict") arrows.append(this.eviction(each, cx, cy, startFor(each, starts), x, (name) => top(name) + LANE - 13, shown));
      else if (each.kind === "quota") marks.append(svg("path.change", { d: `M${cx},${cy - 6}l6,6l-6,6l-6,-6z` }, title));
      else marks.append(svg(each.kind === "start" ? "circle.start" : "circle.end", { cx, cy, r: each.kind === "start" ? 4 : 3, [each.kind === "start" ? "fill" : "stroke"]: fillOf(quotaIndex(each.quota), isDark()) }, title));
    }
    root.append(marks, arrows);
    this.ticks(root, x, height, label, width);
    this.cursor = svg("line.cursor", { y1: 0, y2: height - 22, x1: -9, x2: -9 });
    root.append(this.cursor);
    this.scale = { x, width, label };
    root.addEventListener("click", (event) => this.point(event, root, width, label));
    this.picture.replaceChildren(root);
    this.more.hidden = !more;
    setText(this.more, `and ${plural(more, "quieter quota")}`);
    this.showCursor();
  }

  // A quota's lane: its name, what it used as an area, its min as a dashed line.
  lane(quota, { top, width, label, x, most, resource }) {
    const base = top + LANE - 6;
    const y = (value) => base - (value / most) * (LANE - 14);
    const group = svg("g");
    const colour = fillOf(quotaIndex(quota), isDark());
    const samples = this.history.of(quota, this.from);
    group.append(svg("line.lane", { x1: label, x2: width - 14, y1: base, y2: base }));
    if (samples.length) {
      const path = samples.map(([t, value], i) => `${i ? `H${x(t).toFixed(1)}V` : `M${x(t).toFixed(1)},`}${y(value).toFixed(1)}`).join("") + `H${x(this.to).toFixed(1)}`;
      group.append(svg("path", { d: `${path}V${base}H${x(samples[0][0]).toFixed(1)}Z`, fill: colour, opacity: "0.22" }), svg("path.level", { d: path, stroke: colour }));
    }
    const min = state.quotas.get(quota)?.min[resource];
    if (min) group.append(svg("line.low", { x1: label, x2: width - 14, y1: y(min), y2: y(min) }));
    const used = state.quotas.get(quota)?.used[resource] || 0;
    const name = svg("text", { x: 10, y: top + 20 }, quota ? shortQuota(quota, label < 100 ? 11 : 22) : "no quota", svg("title", {}, quota));
    group.append(svg("rect", { x: 0, y: top + 8, width: 4, height: LANE - 14, fill: colour, rx: 2 }), name, svg("text.axis", { x: 10, y: top + 35 }, state.quotas.has(quota) ? `${amount(resource, used)}${min ? ` / ${amount(resource, min)} min` : ""}` : ""));
    return group;
  }

  eviction(each, cx, cy, claim, x, y, shown) {
    const text = `${clock(each.at, this.relative)} ${each.pod} evicted${each.for ? ` for ${each.for}` : ""}: ${each.message || each.reason}`;
    const group = svg("g", {}, svg("title", {}, text));
    group.append(svg("path.cross", { d: `M${cx - 4.5},${cy - 4.5}l9,9m0,-9l-9,9` }));
    const quota = claim ? claim.quota || "" : claimantQuota(each.for);
    if (quota !== null && shown.includes(quota)) {
      const to = claim ? x(claim.at) : cx + 12;
      const ty = y(quota) + (y(quota) > cy ? -6 : 6);
      const bend = Math.max(18, Math.abs(to - cx) / 2);
      if (quota !== (each.quota || "")) group.append(svg("path.arrow", { d: `M${cx},${cy}C${cx + bend},${cy} ${to - bend / 2},${ty} ${to},${ty}` }), svg("path.head", { d: ty < y(quota) ? `M${to},${ty + 3}l-4,-6h8z` : `M${to},${ty - 3}l-4,6h8z` }));
    }
    return group;
  }

  ticks(root, x, height, label, width) {
    const count = width < 600 ? 3 : 6;
    for (let i = 0; i < count; i += 1) {
      const part = i / (count - 1);
      const t = this.from + part * (this.to - this.from);
      root.append(svg("text.axis", { x: x(t), y: height - 6, "text-anchor": i === 0 ? "start" : i === count - 1 ? "end" : "middle" }, clock(Math.round(t), this.relative)));
      if (i) root.append(svg("line.tick", { x1: x(t), x2: x(t), y1: 0, y2: height - 22 }));
    }
  }

  point(event, root, width, label) {
    const box = root.getBoundingClientRect();
    const part = ((event.clientX - box.left) * (width / box.width) - label) / (width - label - 14);
    if (part < 0) return;
    this.slider.value = String(Math.round(Math.min(1, part) * 1000));
    this.scrub();
  }

  scrub() {
    const part = Number(this.slider.value) / 1000;
    this.at = part >= 1 ? null : this.from + part * (this.to - this.from);
    this.showCursor();
    this.tellList();
    this.tellPast();
  }

  follow() {
    this.slider.value = "1000";
    this.scrub();
  }

  showCursor() {
    const at = this.at ?? this.to;
    if (this.at !== null) this.slider.value = String(Math.max(0, Math.min(1000, Math.round(((this.at - this.from) / (this.to - this.from)) * 1000))));
    setText(this.moment, this.at === null ? "now" : clock(Math.round(at), this.relative));
    this.now.hidden = this.at === null;
    if (!this.cursor) return;
    const cx = this.at === null ? -9 : this.scale.x(at);
    this.cursor.setAttribute("x1", cx);
    this.cursor.setAttribute("x2", cx);
  }

  // Entries, the latest first, up to the chosen moment; what happened alike at one time is one row.
  tellList() {
    const groups = [];
    const upTo = this.at ?? Infinity;
    for (const each of this.told || []) {
      if (each.at > upTo) break;
      const before = groups[groups.length - 1];
      if (before && before.kind === each.kind && each.kind !== "quota" && before.quota === each.quota && before.reason === each.reason && each.at - before.at <= TOGETHER) before.all.push(each);
      else groups.push({ ...each, all: [each] });
    }
    const shown = groups.slice(-MOST_LISTED).reverse().map((each) => ({ ...each, relative: this.relative }));
    this.events.show(shown, (each) => `${each.at}/${each.kind}/${each.pod || each.quota}`);
    this.empty.hidden = Boolean((this.told || []).length);
    setText(this.empty.lastChild, state.cluster.still ? "A snapshot and manifests are of one moment: nothing more happens in them." : "Starts, evictions and changes of quotas are told here as they happen.");
    this.list.hidden = !shown.length;
  }

  tellPast() {
    const at = this.at ?? this.to;
    this.past.hidden = !state.quotas.size;
    this.past.parentElement.classList.toggle("alone", this.past.hidden);
    const resource = this.history.resource || mainResource();
    const rows = this.history.at(at).filter(([, used]) => used).sort((a, b) => b[1] - a[1]).slice(0, 24);
    const title = h("h2", {}, `${shortResource(resource)} in use ${this.at === null ? "now" : `at ${clock(Math.round(at), this.relative)}`}`);
    if (!rows.length) return this.past.replaceChildren(title, h("p.quiet", {}, "Nothing is known of that moment: samples begin when the page is served."));
    const most = Math.max(1, ...rows.map(([, used, min]) => Math.max(used, min || 0)));
    const late = this.at !== null && !this.relative ? h("p.quiet", {}, `${ago(this.to - at)} ago`) : null;
    return this.past.replaceChildren(...[title, late, h("ul.past", {}, ...rows.map(([name, used, min]) => {
      const bar = h("span.past-bar");
      bar.style.width = `${(used / most) * 100}%`;
      bar.style.background = fillOf(quotaIndex(name), isDark());
      const low = h("span.past-min", { hidden: !min });
      low.style.left = `${((min || 0) / most) * 100}%`;
      return h("li", {}, h("a.past-name", { href: `#/quotas/${encodeURIComponent(name)}`, title: name }, shortQuota(name, 40)), h("span.past-track", {}, bar, low), h("span.number", {}, amount(resource, used)));
    }))].filter(Boolean));
  }
}

// The starts of each pod. One that is made anew under its old name starts more than once.
export function startsByPod(told) {
  const starts = new Map();
  for (const each of told) if (each.kind === "start") starts.set(each.pod, [...(starts.get(each.pod) || []), each]);
  return starts;
}

// The start that an eviction was for: the first one of its claim from then on.
export function startFor(eviction, starts) {
  const later = (starts.get(eviction.for) || []).filter((each) => each.at >= eviction.at);
  return later.reduce((first, each) => (first && first.at <= each.at ? first : each), undefined);
}

// The quota of a claim that has not started, from its namespace, if only one quota is in that.
function claimantQuota(pod) {
  if (!pod) return null;
  const row = [...state.waiting.values()].find((each) => each.pod === pod);
  if (row) return row.quota || "";
  const found = [...state.quotas.keys()].filter((name) => name.startsWith(`${pod.split("/")[0]}/`));
  return found.length === 1 ? found[0] : null;
}

const VERBS = { start: "started", evict: "evicted", end: "ended", quota: "quota" };

function told(each) {
  if (each.kind === "quota") return `quota ${each.quota} ${each.what || "changed"}${moved(each)}`;
  return `${each.pod} ${VERBS[each.kind] || each.kind}${each.node ? ` on ${each.node}` : ""}`;
}

function moved(each) {
  const of = (bound, resource, value) => amount(resource, bound === "min" ? value || 0 : value);
  const parts = (each.moved || []).map(([bound, resource, before, after]) => {
    const ends = [of(bound, resource, before), of(bound, resource, after)];
    const values = each.what === "created" ? ends[1] : each.what === "deleted" ? ends[0] : ends.join(" → ");
    return `${bound} ${values} ${shortResource(resource)}`;
  });
  return parts.length ? `: ${parts.join(", ")}` : "";
}

class EventRow {
  constructor(item) {
    this.element = h(`li.${item.kind}`);
    this.count = 0;
  }

  update(item) {
    if (this.count === item.all.length) return;
    this.count = item.all.length;
    const time = h("time", {}, clock(item.at, item.relative));
    this.element.replaceChildren(time, h("div", {}, ...content(item)));
  }
}

function content(item) {
  if (item.kind === "quota") return [h("b", {}, `quota ${item.what || "changed"}`), " ", h("a", { href: `#/quotas/${encodeURIComponent(item.quota)}` }, item.quota), moved(item)];
  const count = item.all.length;
  const who = count > 1 ? `${plural(count, "pod")} of ${item.quota || "no quota"}` : item.pod;
  const found = [h("b", {}, VERBS[item.kind] || item.kind), " ", who];
  if (item.kind === "evict") {
    const claims = [...new Set(item.all.map((each) => each.for).filter(Boolean))];
    found.push(claims.length ? ` for ${claims[0]}${claims.length > 1 ? ` and ${claims.length - 1} more` : ""} ` : " ", h("span.reason", {}, item.reason), h("div.message", {}, item.message || ""));
  } else if (item.node) found.push(h("span.quiet", {}, ` on ${nodesOf(item.all)}`));
  if (count > 1) found.push(h("details", {}, h("summary", {}, "which"), h("div.message", {}, item.all.slice(0, 60).map((each) => each.pod).join(", "), count > 60 ? ` and ${count - 60} more` : "")));
  return found;
}

function nodesOf(all) {
  const names = [...new Set(all.map((each) => each.node))];
  return names.length > 3 ? plural(names.length, "node") : names.join(", ");
}
