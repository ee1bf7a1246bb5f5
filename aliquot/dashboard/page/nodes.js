// Every node with its cards as cells, coloured by team. Drawn on one canvas: only nodes that have
// changed are drawn again, so that 5,000 nodes stay smooth. What is beside the map is in node_facts.

import { fillOf, isDark } from "./colour.js";
import { h, hideTip, showTip } from "./dom.js";
import { natural, plural, short } from "./format.js";
import { fragmentation, kindOf, nodeDetail, parts, teamKeys } from "./node_facts.js";
import { ask, state, teamsByIndex } from "./store.js";

const SIZES = [40, 34, 28, 24, 20, 17, 14, 12, 10, 8, 7, 6, 5];
const HEAD = 26;
const NAMED = 20;
const APART = 22;
const LEAST_WIDE = 150;
const MANY = 48;
const ASK_AFTER = 120;
const GROUPING = "aliquot-grouping";

export class Nodes {
  constructor(name) {
    this.canvas = h("canvas", { tabindex: "0", role: "application", "aria-roledescription": "map of nodes", "aria-label": "Nodes and their cards; arrow keys move, Enter opens a node" });
    this.context = this.canvas.getContext("2d");
    this.places = new Map();
    this.order = [];
    this.drawn = new Map();
    this.cards = new Map();
    this.chosen = name || null;
    this.team = null;
    this.zoom = 0;
    this.facts = h("p.quiet");
    this.keys = h("div.keys", { role: "group", "aria-label": "Teams: choose one to see where it is" });
    this.grouping = h("select", { "aria-label": "Group nodes by", onchange: () => this.group() });
    this.room = h("section.panel", { "aria-label": "Free cards by node" });
    this.detail = h("section.panel.detail", { "aria-label": "The chosen node", "aria-live": "polite" }, h("p.quiet", {}, "Point at a card to see its pod. Choose a node to see all of them."));
    this.empty = h("div.empty", { hidden: true }, h("h2", {}, "No nodes to show"), h("p", {}, "There are none, or this token may not list them."));
    const size = (text, step, label) => h("button", { type: "button", "aria-label": label, onclick: () => this.scale(step) }, text);
    this.element = h("div.view", {}, h("div.bar-tools", {}, h("h1", {}, "Nodes and GPUs"), this.facts, h("div.spring"), this.grouping, h("div.choice", { role: "group", "aria-label": "Size" }, size("−", 1, "smaller"), size("+", -1, "larger"))), this.keys,
      h("div.columns.map-columns", {}, h("div.wide.map", {}, this.canvas, this.empty), h("div.side", {}, this.room, this.detail)));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.resize = new ResizeObserver(() => this.layOut());
    this.resize.observe(this.canvas.parentElement);
    if (name) this.choose(name);
  }

  close() {
    this.resize.disconnect();
    this.leave();
  }

  update(changed) {
    if (!state.cluster) return;
    if (changed.has("theme")) this.drawn.clear();
    if (!["nodes", "theme", "teams", "quotas"].some((part) => changed.has(part))) return;
    this.showGrouping();
    if (state.nodes.size !== this.order.length || this.order.some((name) => !state.nodes.has(name))) this.layOut();
    else this.draw();
    this.tellFacts();
    if (this.chosen && changed.has("nodes") && state.nodes.get(this.chosen) !== this.detailOf) this.choose(this.chosen);
  }

  tellFacts() {
    const teams = teamsByIndex();
    const room = fragmentation(state.nodes);
    this.empty.hidden = state.nodes.size > 0;
    this.room.hidden = !room.cards;
    this.element.classList.toggle("nothing", !state.nodes.size);
    this.facts.textContent = room.cards ? `${plural(state.nodes.size, "node")}, ${plural(room.cards, room.word).replace("card or slices", "cards and slices")}, ${room.idle.toLocaleString("en")} idle` : state.nodes.size ? `${plural(state.nodes.size, "node")}, no cards; the fill of a node is its CPU` : "";
    this.room.replaceChildren(...room.element());
    this.keys.replaceChildren(...teamKeys(state.nodes, teams, this.team, (index) => this.showTeam(index)));
  }

  showTeam(index) {
    this.team = this.team === index ? null : index;
    this.drawn.clear();
    this.draw();
    this.tellFacts();
  }

  showGrouping() {
    const levels = state.cluster.levels.map((level, i) => [level, i]).filter(([, i]) => [...state.nodes.values()].some((node) => node.places[i]));
    const models = new Set([...state.nodes.values()].map((node) => node.model));
    const options = [...levels.map(([level]) => level), ...(models.size > 1 || !levels.length ? ["model"] : []), "nothing"];
    const text = options.join();
    if (text === this.options) return;
    this.options = text;
    this.grouping.replaceChildren(...options.map((each) => h("option", { value: each }, each === "nothing" ? "not grouped" : `by ${each.slice(each.lastIndexOf("/") + 1)}`)));
    const kept = localStorage.getItem(GROUPING);
    this.grouping.value = options.includes(kept) ? kept : levels.length ? levels[levels.length - 1][0] : options[0];
    this.order = [];
  }

  group() {
    localStorage.setItem(GROUPING, this.grouping.value);
    this.layOut();
  }

  scale(step) {
    this.zoom += step;
    this.layOut();
  }

  // The group of a node: its place down to the chosen level, or its model.
  groupOf(node) {
    const by = this.grouping.value;
    if (by === "nothing") return "";
    if (by === "model" || !by) return kindOf(node);
    const level = state.cluster.levels.indexOf(by);
    return node.places.slice(0, level + 1).filter(Boolean).join(" / ") || "elsewhere";
  }

  layOut() {
    if (!state.nodes.size) {
      this.order = [];
      this.canvas.hidden = true;
      return;
    }
    this.canvas.hidden = false;
    const groups = new Map([...state.nodes].map(([name, node]) => [name, this.groupOf(node)]));
    this.order = [...state.nodes.keys()].sort((a, b) => natural(groups.get(a), groups.get(b)) || natural(a, b));
    const width = Math.max(240, this.canvas.parentElement.clientWidth);
    const room = Math.max(380, innerHeight - this.canvas.parentElement.getBoundingClientRect().top - scrollY - 24);
    let best = SIZES.findIndex((size) => this.place(groups, width, size) <= room);
    if (best < 0) best = SIZES.length - 1;
    this.zoom = Math.max(-best, Math.min(SIZES.length - 1 - best, this.zoom));
    const height = this.place(groups, width, SIZES[best + this.zoom]);
    const ratio = Math.min(devicePixelRatio || 1, 16000 / Math.max(height, 1));
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawn.clear();
    this.draw();
  }

  // Where each node is, with cells of this size; returns the height of all. Groups are boxes that
  // stand beside each other where they fit, each with its nodes in lines below its name.
  place(groups, width, cell) {
    this.cell = cell;
    this.places.clear();
    this.heads = [];
    let [x, y, tallest] = [0, 0, 0];
    for (const box of this.boxes(groups)) {
      const wide = this.boxWidth(box, width, cell);
      if (x && x + wide > width) [x, y, tallest] = [0, y + tallest, 0];
      const high = this.placeBox(box, x, y, wide, cell);
      tallest = Math.max(tallest, high);
      x += wide + APART;
    }
    return y + tallest + 8;
  }

  boxes(groups) {
    const found = [];
    for (const name of this.order) {
      const node = state.nodes.get(name);
      const text = groups.get(name);
      let box = found[found.length - 1];
      if (!box || box.text !== text) {
        box = { text, names: [], nodes: 0, cards: 0, idle: 0 };
        found.push(box);
      }
      box.names.push(name);
      box.nodes += 1;
      box.cards += node.cells.length;
      box.idle += node.cells.filter((each) => each === 0).length;
    }
    return found;
  }

  // As wide as its nodes in one line, or as some four lines of them, but never wider than the map.
  boxWidth(box, width, cell) {
    if (box.names.length > MANY) return width;
    const gap = cell >= 14 ? 6 : 3;
    let [all, widest] = [0, 0];
    for (const name of box.names) {
      const wide = shapeOf(state.nodes.get(name))[0] * cell + 4 + gap;
      all += wide;
      widest = Math.max(widest, wide);
    }
    const lines = Math.ceil(box.names.length / 8);
    return Math.min(width, Math.max(Math.ceil(all / lines / widest) * widest, LEAST_WIDE));
  }

  placeBox(box, left, top, wide, cell) {
    const title = cell >= NAMED ? 15 : 0;
    const gap = cell >= 14 ? 6 : 3;
    if (box.text) this.heads.push({ ...box, x: left, y: top, wide });
    let [x, y, tallest] = [left, top + (box.text ? HEAD : 0), 0];
    for (const name of box.names) {
      const [columns, lines] = shapeOf(state.nodes.get(name));
      const [w, t] = [columns * cell + 4, lines * cell + 4 + title];
      if (x > left && x + w > left + wide) [x, y, tallest] = [left, y + tallest + gap, 0];
      this.places.set(name, { x, y, w, t, columns, title });
      x += w + gap;
      tallest = Math.max(tallest, t);
    }
    return y + tallest + gap + 6 - top;
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const colours = { line: style.getPropertyValue("--line"), idle: style.getPropertyValue("--idle"), text: style.getPropertyValue("--text"), quiet: style.getPropertyValue("--quiet"), bad: style.getPropertyValue("--bad"), chosen: style.getPropertyValue("--accent") };
    const dark = isDark();
    if (!this.drawn.size) {
      this.context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
      for (const head of this.heads || []) this.drawHead(head, colours);
    }
    for (const name of this.order) {
      const node = state.nodes.get(name);
      const look = name === this.chosen ? null : node;
      if (look && this.drawn.get(name) === look) continue;
      this.drawn.set(name, look);
      this.drawNode(name, node, colours, dark);
    }
  }

  drawHead({ text, x, y, wide: room, nodes, cards, idle }, colours) {
    const c = this.context;
    c.font = "600 13px system-ui, sans-serif";
    c.fillStyle = colours.text;
    c.fillText(text, x + 1, y + 17, room);
    const wide = c.measureText(text).width + 12;
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = colours.quiet;
    const [many, few] = [plural(nodes, "node"), cards ? `${idle.toLocaleString("en")} of ${cards.toLocaleString("en")} idle` : ""];
    const texts = [`${many}${few ? `, ${few}` : ""}`, few || many];
    const told = texts.find((each) => wide + c.measureText(each).width <= room);
    if (told) c.fillText(told, x + wide, y + 17);
  }

  drawNode(name, node, colours, dark) {
    const { x, y, w, t, columns, title } = this.places.get(name);
    const c = this.context;
    c.clearRect(x - 1.5, y - 1.5, w + 3, t + 3);
    if (title) {
      c.font = "11px system-ui, sans-serif";
      c.fillStyle = colours.quiet;
      c.fillText(short(name, Math.max(4, Math.floor(w / 6))), x + 1, y + 11);
    }
    const [top, tall] = [y + title, t - title];
    c.strokeStyle = name === this.chosen ? colours.chosen : node.state === "ready" ? colours.line : colours.bad;
    c.lineWidth = name === this.chosen ? 2 : 1;
    c.setLineDash(node.state === "cordoned" ? [3, 2] : []);
    if (this.cell > 5 || node.state !== "ready" || name === this.chosen) c.strokeRect(x + 0.5, top + 0.5, w - 1, tall - 1);
    c.setLineDash([]);
    const size = this.cell - (this.cell >= 20 ? 2 : 1);
    const cells = node.cells.length ? node.cells : [[[-1, node.cpu]]];
    cells.forEach((cell, i) => {
      const [cx, cy] = [x + 2 + (i % columns) * this.cell, top + 2 + Math.floor(i / columns) * this.cell];
      const wide = node.cells.length ? size : w - 5;
      c.fillStyle = colours.idle;
      c.fillRect(cx, cy, wide, size);
      let bottom = cy + size;
      for (const [owner, part] of node.cells.length ? parts(cell) : [[0, node.cpu]]) {
        const high = (size * Math.min(part, 1000)) / 1000;
        c.globalAlpha = this.team === null || owner - 1 === this.team ? 1 : 0.13;
        c.fillStyle = fillOf(owner - 1, dark);
        bottom -= high;
        c.fillRect(cx, bottom, wide, high > 2 && Array.isArray(cell) ? high - 1 : high);
      }
      c.globalAlpha = 1;
    });
  }

  find(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - left, event.clientY - top];
    for (const [name, { x, y, w, t, columns, title }] of this.places) {
      if (px >= x && px <= x + w && py >= y && py <= y + t) {
        const column = Math.floor((px - x - 2) / this.cell);
        const line = Math.floor((py - y - title - 2) / this.cell);
        return { name, cell: line < 0 || column < 0 || column >= columns ? -1 : line * columns + column };
      }
    }
    return null;
  }

  // Says at once whose card it is; which pod's, as soon as the server has answered.
  hover(event) {
    const found = this.find(event);
    clearTimeout(this.asking);
    this.pointed = found && { ...found, x: event.clientX, y: event.clientY };
    this.tip();
    const node = found && state.nodes.get(found.name);
    if (node && node.pods && this.cards.get(found.name)?.node !== node) this.asking = setTimeout(() => this.askCards(found.name, node), ASK_AFTER);
  }

  leave() {
    clearTimeout(this.asking);
    this.pointed = null;
    hideTip();
  }

  async askCards(name, node) {
    try {
      const { cards } = await ask(`api/node?name=${encodeURIComponent(name)}`);
      if (this.cards.size > 500) this.cards.clear();
      this.cards.set(name, { node, cards });
      this.tip();
    } catch {
      // the team is shown without its pods
    }
  }

  tip() {
    if (!this.pointed) return hideTip();
    const { name, cell, x, y } = this.pointed;
    const node = state.nodes.get(name);
    if (!node) return hideTip();
    const lines = [name, `${kindOf(node)}; ${node.state}; ${plural(node.pods, "pod")}`];
    const shown = node.cells[cell];
    const pods = this.cards.get(name)?.cards[cell] || [];
    if (shown === 0) lines.push(`card ${cell}: idle`);
    else if (shown !== undefined) {
      const teams = teamsByIndex();
      parts(shown).forEach(([owner, part], i) => lines.push(`card ${cell}: ${teams.get(owner - 1)?.name || "another team"}${part < 1000 ? `, ${part / 10}%` : ""}`, ...(pods[i] ? [`pod ${pods[i][0]}`] : [])));
    }
    return showTip(lines, x, y);
  }

  click(event) {
    const found = this.find(event);
    if (found) this.choose(found.name);
  }

  key(event) {
    const to = this.step(event.key);
    if (to !== null) {
      event.preventDefault();
      this.mark(to);
      this.detail.replaceChildren(...nodeDetail(to, state.nodes.get(to), null));
      this.reveal(to);
    } else if (event.key === "Enter" && this.chosen) this.choose(this.chosen);
  }

  // The node that a key leads to: the next one, or the nearest in the row above or below.
  step(key) {
    if (!this.order.length) return null;
    const at = this.order.indexOf(this.chosen);
    if (key === "Home" || (at < 0 && key.startsWith("Arrow"))) return this.order[0];
    if (key === "End") return this.order[this.order.length - 1];
    if (key === "ArrowRight") return this.order[Math.min(this.order.length - 1, at + 1)];
    if (key === "ArrowLeft") return this.order[Math.max(0, at - 1)];
    if (key !== "ArrowDown" && key !== "ArrowUp") return null;
    const from = this.places.get(this.chosen);
    const down = key === "ArrowDown" ? 1 : -1;
    let best = null;
    for (const [name, place] of this.places) {
      const away = (place.y - from.y) * down;
      if (away <= 0) continue;
      const far = away * 1000 + Math.abs(place.x - from.x);
      if (!best || far < best.far) best = { name, far };
    }
    return best ? best.name : this.chosen;
  }

  mark(name) {
    for (const each of [this.chosen, name]) if (each) this.drawn.delete(each);
    this.chosen = name;
    if (this.order.length) this.draw();
  }

  reveal(name) {
    const { y, t } = this.places.get(name);
    const { top } = this.canvas.getBoundingClientRect();
    if (top + y < 60) scrollBy(0, top + y - 70);
    else if (top + y + t > innerHeight) scrollBy(0, top + y + t - innerHeight + 20);
  }

  async choose(name) {
    this.mark(name);
    this.detailOf = state.nodes.get(name);
    history.replaceState(null, "", `#/nodes/${encodeURIComponent(name)}`);
    if (this.detailOf && this.detail.dataset.node !== name) this.detail.replaceChildren(...nodeDetail(name, this.detailOf, null));
    this.detail.dataset.node = name;
    try {
      const found = await ask(`api/node?name=${encodeURIComponent(name)}`);
      if (this.chosen === name) this.detail.replaceChildren(...nodeDetail(name, state.nodes.get(name), found));
    } catch (error) {
      if (this.chosen === name) this.detail.replaceChildren(h("h2", {}, name), h("p.problem", {}, error.message));
    }
  }
}

function shapeOf(node) {
  const count = Math.max(node.cells.length, 1);
  const columns = count <= 4 ? count : count <= 8 ? 4 : Math.ceil(Math.sqrt(count));
  return [Math.max(columns, node.cells.length ? 1 : 2), Math.ceil(count / columns)];
}
