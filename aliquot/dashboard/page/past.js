// What every quota used, from each moment at which it changed: what the server has kept first, then what
// has been seen since.

import { ask, state } from "./store.js";

const MOST = 2000;

export class History {
  constructor() {
    this.resource = null;
    this.from = null;
    this.curves = new Map();
  }

  async load() {
    const found = await ask("api/history");
    this.resource = found.resource || this.resource;
    this.from = found.from;
    const seen = this.curves;
    this.curves = new Map(Object.entries(found.quotas));
    for (const [name, points] of seen) {
      const since = points.filter(([t]) => t > found.to);
      this.curves.set(name, [...(this.curves.get(name) || []), ...since]);
    }
  }

  // Adds what the quotas use now, where that is something else than before.
  note() {
    if (!state.quotas.size) return;
    this.resource ??= state.cluster.resources[0] || "cpu";
    this.from ??= state.cluster.now;
    for (const [name, row] of state.quotas) this.add(name, row.used[this.resource] || 0);
    for (const name of this.curves.keys()) if (!state.quotas.has(name)) this.add(name, 0);
  }

  add(name, used) {
    let points = this.curves.get(name);
    if (!points) this.curves.set(name, (points = []));
    if (points.length ? points[points.length - 1][1] === used : !used) return;
    points.push([state.cluster.now, used]);
    if (points.length > MOST) points.shift();
  }

  names() {
    return [...this.curves].filter(([, points]) => points.some(([, used]) => used)).map(([name]) => name);
  }

  // The moments from one on at which what a quota used changed, that moment first.
  of(name, from) {
    const points = this.curves.get(name) || [];
    const begin = Math.max(from, this.from ?? from);
    const later = points.findIndex(([t]) => t > begin);
    const before = later < 0 ? points.length - 1 : later - 1;
    const since = later < 0 ? [] : points.slice(later);
    return points.length ? [[begin, before < 0 ? 0 : points[before][1]], ...since] : [];
  }

  most(name, from) {
    return Math.max(0, ...this.of(name, from).map(([, value]) => value));
  }

  // What each quota used at a moment, and its min now.
  at(moment) {
    if (this.from === null || moment < this.from - 5) return [];
    const parents = new Set([...state.quotas.values()].map((row) => row.parent));
    return [...this.curves].filter(([name]) => !parents.has(name)).map(([name, points]) => [name, points.findLast(([t]) => t <= moment)?.[1] || 0, state.quotas.get(name)?.min[this.resource]]);
  }
}
