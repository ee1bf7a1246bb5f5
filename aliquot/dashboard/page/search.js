// Find a quota, a node or a waiting pod by part of its name; arrow keys and Enter. What begins with it
// comes first.

import { h } from "./dom.js";
import { natural } from "./format.js";
import { state } from "./store.js";

const MOST = 12;
const EACH = 6;

export function search(input, list) {
  let chosen = -1;
  const show = () => {
    const found = matches(input.value.trim().toLowerCase());
    chosen = found.length ? 0 : -1;
    list.replaceChildren(...found.map(([kind, name, href], i) => h("li", { role: "option", id: `found-${i}`, "aria-selected": i === 0 ? "true" : "false", onmousedown: () => go(href) }, h("span.quiet", {}, `${kind} `), name)));
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    mark();
    return found;
  };
  const mark = () => {
    [...list.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === chosen)));
    if (chosen >= 0) input.setAttribute("aria-activedescendant", `found-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const go = (href) => {
    location.hash = href;
    input.value = "";
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.blur();
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", () => setTimeout(() => (list.hidden = true), 150));
  input.addEventListener("keydown", (event) => {
    const found = matches(input.value.trim().toLowerCase());
    if (event.key === "Escape") input.blur();
    else if (event.key === "Enter" && found[chosen]) go(found[chosen][2]);
    else if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, found.length - 1);
    else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0);
    else return;
    event.preventDefault();
    mark();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/input|select|textarea/i.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
}

function matches(text) {
  if (!text) return [];
  const found = [];
  const add = (kind, names, view) => {
    const hits = [];
    for (const name of names) {
      const at = name.toLowerCase().indexOf(text);
      if (at >= 0) hits.push([at > 0, name]);
      if (hits.length >= MOST * 20) break;
    }
    hits.sort((a, b) => a[0] - b[0] || natural(a[1], b[1]));
    found.push(...hits.slice(0, EACH).map(([, name]) => [kind, name, `#/${view}/${encodeURIComponent(name)}`]));
  };
  add("quota", state.quotas.keys(), "quotas");
  add("node", state.nodes.keys(), "nodes");
  add("waiting", new Set([...state.waiting.values()].flatMap((each) => (each.gang ? [each.gang, each.pod] : [each.pod]))), "waiting");
  return found.slice(0, MOST).map(([kind, name, href]) => [kind, name, kind === "waiting" ? waitingHref(name) : href]);
}

// A gang is found by its name, and shown as its row.
function waitingHref(name) {
  const row = [...state.waiting.values()].find((each) => each.gang === name);
  return `#/waiting/${encodeURIComponent(row ? row.pod : name)}`;
}
