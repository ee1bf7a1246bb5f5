// Who waits, in order, and why; one row a claim or gang, and for pods that are alike.

import { fillOf, isDark } from "./colour.js";
import { breakable, h, Rows, setText } from "./dom.js";
import { explanation } from "./explanation.js";
import { ago, amounts, plural } from "./format.js";
import { ask, quotaIndex, state } from "./store.js";

export class Waiting {
  constructor(path) {
    this.chosen = null;
    this.filter = null;
    this.body = h("tbody");
    this.rows = new Rows(this.body, (item) => new WaitingRow(item, (row) => this.choose(row.pod)));
    this.count = h("p.quiet");
    this.reasons = h("div.keys", { role: "group", "aria-label": "Show only one reason" });
    this.detail = h("section.panel.detail", { "aria-label": "Why this pod waits", "aria-live": "polite" });
    this.table = h("table.waiting", {}, h("caption.hidden", {}, "Waiting pods, the next one first"),
      h("thead", {}, h("tr", {}, ...[["#", "order"], ["Pods", "who"], ["Quota", "whose"], ["Asks for", "asks"], ["Waits", "since"], ["Because", "because"]].map(([name, kind]) => h(kind === "order" || kind === "since" ? `th.number.${kind}` : `th.${kind}`, { scope: "col" }, name)))), this.body);
    this.empty = h("div.empty", { hidden: true }, h("h2", {}, "No pod waits"), h("p", {}, "Every pod that asked to start has started. One that has to wait is shown here at once, with the reason and what would help."));
    this.beyond = h("p.quiet");
    this.columns = h("div.columns.detail-columns", {}, h("div.wide", {}, h("div.sheet", {}, this.table), this.empty, this.beyond), this.detail);
    this.element = h("div.view", {}, h("div.bar-tools", {}, h("h1", {}, "Waiting"), this.count), this.reasons, this.columns);
    if (path) this.choose(path);
    else this.detail.append(h("h2", {}, "Why?"), h("p.quiet", {}, "Choose a row: every gate with its numbers, who is ahead, what would help, and when it may start."));
  }

  async choose(pod) {
    this.chosen = pod;
    if (location.hash !== `#/waiting/${encodeURIComponent(pod)}`) history.replaceState(null, "", `#/waiting/${encodeURIComponent(pod)}`);
    this.detail.classList.add("asked");
    this.detail.replaceChildren(h("h2", {}, pod), h("p.quiet", {}, "Asking the engine ..."));
    this.update(new Set(["waiting"]));
    try {
      const found = await ask(`api/explain?pod=${encodeURIComponent(pod)}`);
      if (this.chosen === pod) this.detail.replaceChildren(explanation(found));
    } catch (error) {
      if (this.chosen === pod) this.detail.replaceChildren(h("h2", {}, pod), h("p.problem", {}, error.message));
    }
  }

  update(changed) {
    if (!["waiting", "cluster", "theme", "quotas"].some((part) => changed.has(part)) || !state.cluster) return;
    const all = [...state.waiting.values()].sort((a, b) => a.order - b.order);
    const reasons = new Map();
    let shownPods = 0;
    for (const each of all) {
      if (each.reason !== null) reasons.set(each.reason, (reasons.get(each.reason) || 0) + each.pods);
      shownPods += each.pods;
    }
    if (this.filter !== null && !reasons.has(this.filter)) this.filter = null;
    this.showReasons(reasons);
    const shown = all.filter((each) => this.filter === null || each.reason === this.filter).map((each) => ({ ...each, chosen: each.pod === this.chosen }));
    this.rows.show(shown, (each) => each.key);
    const pods = Math.max(state.cluster.waiting, shownPods);
    setText(this.count, pods ? `${plural(pods, "pod")}, the next one first; pods that are alike are one row` : "");
    setText(this.beyond, pods > shownPods && all.length ? `${plural(pods - shownPods, "pod")} further back are not listed.` : "");
    this.table.parentElement.hidden = !all.length;
    this.table.classList.toggle("timeless", state.cluster.virtual);
    this.empty.hidden = Boolean(all.length || pods);
    this.detail.hidden = !all.length && !this.chosen;
  }

  showReasons(reasons) {
    const text = JSON.stringify([...reasons, this.filter]);
    if (text === this.lastReasons) return;
    this.lastReasons = text;
    this.reasons.hidden = reasons.size < 2;
    this.reasons.replaceChildren(...[...reasons].sort((a, b) => b[1] - a[1]).map(([reason, count]) =>
      h("button.key", { type: "button", "aria-pressed": reason === this.filter ? "true" : "false", onclick: () => this.only(reason) }, reason || "due", h("b", {}, count.toLocaleString("en")))));
  }

  only(reason) {
    this.filter = this.filter === reason ? null : reason;
    this.update(new Set(["waiting"]));
  }
}

class WaitingRow {
  constructor(item, choose) {
    this.item = item;
    this.number = h("td.number.order");
    this.who = h("span.clamped");
    this.button = h("button.link", { type: "button", onclick: () => choose(this.item) }, this.who);
    this.more = h("div.quiet");
    this.dot = h("span.dot");
    this.quota = h("span.clamped");
    this.asks = h("td.asks");
    this.since = h("td.number.since");
    this.reason = h("span.reason");
    this.message = h("div.message.clamped");
    this.element = h("tr", { onclick: (event) => event.target.closest("a, button") || choose(this.item) }, this.number, h("td", {}, this.button, this.more), h("td", {}, h("div.team", {}, this.dot, this.quota)), this.asks, this.since, h("td.because", {}, this.reason, this.message));
  }

  update(item) {
    this.item = item;
    setText(this.number, item.order + 1);
    const name = item.gang || item.pod;
    if (this.who.textContent !== name) this.who.replaceChildren(...breakable(name));
    this.button.title = name;
    setText(this.more, item.gang ? `gang of ${plural(item.pods, "pod")}` : item.pods > 1 ? `and ${item.pods - 1} like it` : "");
    this.dot.style.background = fillOf(quotaIndex(item.quota), isDark());
    const quota = item.quota || "no quota";
    if (this.quota.textContent !== quota) this.quota.replaceChildren(...breakable(quota));
    this.quota.title = quota;
    setText(this.asks, amounts(item.asks, state.cluster.resources) + (item.pods > 1 ? " each" : ""));
    setText(this.since, ago(item.since === null || state.cluster.virtual ? null : state.cluster.now - item.since));
    this.reason.hidden = item.reason === null;
    setText(this.reason, item.reason || "due");
    setText(this.message, item.reason === null ? "asking ..." : item.message || "");
    this.message.title = item.message || "";
    this.element.classList.toggle("chosen", item.chosen);
    if (item.chosen) this.button.setAttribute("aria-current", "true");
    else this.button.removeAttribute("aria-current");
  }
}
