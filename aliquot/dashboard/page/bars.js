// A quota as a bar: what it uses, what of it is borrowed, its min as a mark, its max as the end.

import { h } from "./dom.js";
import { amount, shortResource, titled } from "./format.js";
import { shareName } from "./store.js";

export function quotaFigures(row, resource) {
  const used = row.used[resource] || 0;
  const min = row.min[resource] || 0;
  const max = row.max[resource];
  const borrowed = row.borrowed[resource] || 0;
  const lent = row.lent[resource] || 0;
  const request = row.request[resource] || 0;
  const share = row.runtime ? row.runtime[resource] : undefined;
  return { used, min, max, borrowed, lent, request, share };
}

export function words(row, resource) {
  const { used, min, max, borrowed, lent, request, share } = quotaFigures(row, resource);
  const of = (value) => `${amount(resource, value)}`;
  const parts = [`uses ${of(used)} ${shortResource(resource)}`, `min ${of(min)}`, `max ${max === undefined ? "unlimited" : of(max)}`];
  if (share !== undefined && share !== min) parts.push(`${(shareName() || "share").toLowerCase()} ${of(share)}`);
  if (borrowed > 0) parts.push(`borrows ${of(borrowed)}`);
  else if (used < min) parts.push(`${of(min - used)} of its min idle`);
  if (lent > 0) parts.push(`lends ${of(lent)}`);
  if (request > used) parts.push(`${of(request - used)} more asked for`);
  if (row.inForce && (row.inForce[resource] ?? min) < min) parts.push(`only ${of(row.inForce[resource])} of its min in force`);
  return parts.join(", ");
}

// The end of a bar: all that is marked on it, and its max unless that is beyond the cluster.
export function scaleOf(row, resource, total) {
  const { used, min, max, share } = quotaFigures(row, resource);
  return Math.max(used, min, share || 0, Math.min(max ?? total, total || Infinity));
}

export class Bar {
  constructor() {
    this.own = h("span.bar-own");
    this.shared = h("span.bar-shared");
    this.borrowed = h("span.bar-borrowed");
    this.lent = h("span.bar-lent");
    this.asked = h("span.bar-asked");
    this.min = h("span.bar-min");
    this.share = h("span.bar-share");
    this.max = h("span.bar-max");
    this.beyond = h("span.bar-beyond");
    this.element = h("div.bar", { role: "img" }, this.beyond, this.asked, this.lent, this.own, this.shared, this.borrowed, this.max, this.share, this.min);
  }

  update(row, resource, scale) {
    const figures = quotaFigures(row, resource);
    const text = words(row, resource);
    const look = `${text}/${scale}`;
    if (look === this.look) return;
    this.look = look;
    const { used, min, max, borrowed, lent, request, share } = figures;
    const part = (value) => `${(Math.min(value, scale) / (scale || 1)) * 100}%`;
    const own = share === undefined ? used - Math.min(borrowed, used) : Math.min(used, min);
    const shared = Math.max(own, Math.min(used, share ?? 0));
    this.own.style.width = part(own);
    this.shared.style.left = part(own);
    this.shared.style.width = part(shared - own);
    this.borrowed.style.left = part(shared);
    this.borrowed.style.width = part(used - shared);
    this.lent.style.left = part(used);
    this.lent.style.width = part(Math.min(lent, Math.max(min - used, 0)));
    this.asked.style.left = part(used);
    this.asked.style.width = part(Math.max(Math.min(request, max ?? request, scale) - used, 0));
    this.min.hidden = !min;
    this.min.style.left = part(min);
    this.share.hidden = share === undefined || !share;
    this.share.style.left = part(share || 0);
    this.max.hidden = max === undefined || max >= scale;
    this.max.style.left = part(max ?? scale);
    this.beyond.hidden = max === undefined || max >= scale;
    this.beyond.style.left = part(max ?? scale);
    this.element.setAttribute("aria-label", text);
    this.element.title = text;
  }
}

export function legend() {
  const item = (name, text) => h("span.legend-item", {}, h(`span.swatch.${name}`), text);
  const share = shareName();
  return h("div.legend", { "aria-hidden": "true" }, item("own", "within min"), share ? item("shared", `within ${share.toLowerCase()}`) : null, item("borrowed", share ? `above ${share.toLowerCase()}` : "borrowed"), item("lent", "lent"), item("asked", "asked for"), item("min", "min"),
    share ? item("share", share.toLowerCase()) : null, item("max", "max"));
}

export function resourceChoice(resources, chosen, choose) {
  const group = h("div.choice", { role: "group", "aria-label": "Resource" });
  for (const name of resources.slice(0, 8)) {
    group.append(h("button", { type: "button", "aria-pressed": name === chosen ? "true" : "false", title: name, onclick: () => choose(name) }, titled(shortResource(name))));
  }
  return group;
}
