// The page: which view is shown, what stands above all views, and the stream that feeds them.

import { h, setText } from "./dom.js";
import { amount, percent, plural, shortResource, titled } from "./format.js";
import { parts } from "./node_facts.js";
import { Nodes } from "./nodes.js";
import { Quota } from "./quota.js";
import { Quotas } from "./quotas.js";
import { search } from "./search.js";
import { follow, listen, setToken, state } from "./store.js";
import { Story } from "./story.js";
import { Waiting } from "./waiting.js";
import { WhatIf } from "./what_if.js";

const VIEWS = [
  ["quotas", "Quotas", (name) => (name ? new Quota(name) : new Quotas())],
  ["nodes", "Nodes", (name) => new Nodes(name)],
  ["waiting", "Waiting", (name) => new Waiting(name)],
  ["story", "Story", (name) => new Story(name)],
  ["what-if", "What if", (name) => new WhatIf(name)],
];
const EVERYTHING = new Set(["cluster", "quotas", "nodes", "waiting", "loans", "namespaces", "gpuQuotas", "teams", "story", "resource", "theme"]);
const MOST_STATS = 3;

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
let view = null;
let busyCards = 0;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const found = VIEWS.find(([key]) => key === name) || VIEWS[0];
  const argument = rest.length ? decoded(rest.join("/")) : null;
  view?.close?.();
  view = found[2](argument);
  main.replaceChildren(view.element);
  document.title = `${argument || found[1]} – Aliquot`;
  for (const link of tabs.children) {
    if (link.dataset.view === found[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.update(EVERYTHING);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function showTabs() {
  tabs.replaceChildren(...VIEWS.map(([key, name]) => h("a", { href: `#/${key}`, "data-view": key }, name, key === "waiting" ? h("span.badge", { hidden: true }) : null)));
}

// Cards in use, parts of cards included, where they are shared; else what pods ask for says it.
function countCards() {
  busyCards = 0;
  let shared = false;
  for (const node of state.nodes.values()) {
    for (const cell of node.cells) {
      shared ||= Array.isArray(cell);
      for (const [, part] of parts(cell)) busyCards += part / 1000;
    }
  }
  busyCards = shared ? Number(busyCards.toFixed(1)) : 0;
}

function showSummary() {
  const { cluster } = state;
  const parents = new Set();
  for (const row of state.quotas.values()) if (row.parent) parents.add(row.parent);
  const borrowedOf = (resource) => {
    let sum = 0;
    for (const [name, row] of state.quotas) if (!parents.has(name)) sum += row.borrowed[resource] || 0;
    return sum;
  };
  const figures = cluster.resources.filter((each) => cluster.total[each]).slice(0, MOST_STATS).map((resource) => {
    const total = cluster.total[resource];
    const used = Math.max(cluster.used[resource] || 0, /\/gpu$/.test(resource) ? Math.min(busyCards, total) : 0);
    const borrowed = Math.min(borrowedOf(resource), used);
    const meter = h("span.meter", {}, part("own", (used - borrowed) / total), part("borrowed", borrowed / total));
    return h("div.stat", {}, h("span.stat-name", {}, titled(shortResource(resource))),
      h("span.stat-figure", {}, amount(resource, used), h("span.quiet", {}, ` of ${amount(resource, total)}`), h("span.stat-part", {}, percent(used, total))), meter);
  });
  const hidden = cluster.limited || cluster.policy === "?";
  const pods = h("div.stat", {}, h("span.stat-name", {}, "Pods"), h("span.stat-figure", {}, cluster.running.toLocaleString("en"), h("span.quiet", {}, " run, "), cluster.waiting.toLocaleString("en"), h("span.quiet", {}, " wait")),
    h("span.quiet.stat-more", {}, `on ${plural(cluster.nodes, "node")}`));
  const about = h("div.stat.about", {}, h("span.stat-name", {}, "Cluster"), h("span.stat-figure", { title: cluster.source }, cluster.source), h("span.quiet.stat-more", {}, `policy ${cluster.policy}`));
  document.getElementById("summary").replaceChildren(about, ...figures, ...(hidden ? [] : [pods]));
  const badge = tabs.querySelector(".badge");
  badge.hidden = !cluster.waiting;
  setText(badge, cluster.waiting.toLocaleString("en"));
}

function part(name, share) {
  const found = h(`span.meter-${name}`);
  found.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return found;
}

function showBanner() {
  const banner = document.getElementById("banner");
  const text = state.connected ? state.cluster?.notice || (state.cluster ? "" : "Reading the cluster ...") : state.problem && `Not connected: ${state.problem}. Trying again.`;
  banner.hidden = !text;
  setText(banner, text || "");
}

function signIn(status, text) {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const form = h("form.sign-in", { onsubmit: (event) => {
      event.preventDefault();
      setToken(field.value.trim());
      route();
      resolve();
    } }, h("h1", {}, "Sign in"), h("p", {}, status === 401 ? "This page shows what a token of the cluster may list." : text), h("label", { for: "token" }, "Token"), field, h("button.primary", { type: "submit" }, "Show"), h("p.quiet", {}, "kubectl create token NAME prints one. It is kept in this tab only."));
    main.replaceChildren(form);
    field.focus();
  });
}

document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
  localStorage.setItem("aliquot-theme", document.documentElement.dataset.theme);
  view.update(EVERYTHING);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.update(EVERYTHING));
if (localStorage.getItem("aliquot-theme")) document.documentElement.dataset.theme = localStorage.getItem("aliquot-theme");

listen((changed) => {
  if (changed.has("nodes")) countCards();
  if (changed.has("cluster")) showSummary();
  showBanner();
  if (main.firstChild === view.element) view.update(changed);
  document.documentElement.dataset.shown = "true";
});
addEventListener("hashchange", route);
showTabs();
route();
search(document.getElementById("search"), document.getElementById("found"));
follow(signIn);
