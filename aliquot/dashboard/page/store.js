// What the server has told, and who wants to know of it. One stream brings everything: a first frame
// with all rows, then frames with the rows that have changed.

import { short } from "./format.js";

const TOKEN = "aliquot-token";
const LONGEST_PAUSE = 15000;

export const state = {
  cluster: null,
  quotas: new Map(),
  nodes: new Map(),
  waiting: new Map(),
  loans: new Map(),
  namespaces: new Map(),
  gpuQuotas: new Map(),
  teams: new Map(),
  story: [],
  connected: false,
  problem: null,
};

const PARTS = ["quotas", "nodes", "waiting", "loans", "namespaces", "gpuQuotas", "teams"];

const listeners = new Set();
let scheduled = false;
let changed = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(parts) {
  parts.forEach((part) => changed.add(part));
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    const now = changed;
    changed = new Set();
    for (const listener of [...listeners]) listener(now);
  });
}

export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export async function ask(path, body) {
  const options = { headers: headers(), cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim() || `${response.status}`);
  return JSON.parse(text);
}

function take(frame) {
  const parts = [];
  if (frame.cluster) {
    state.cluster = frame.cluster;
    parts.push("cluster");
  }
  for (const part of PARTS) {
    const news = frame[part];
    if (!news) continue;
    if (news.all) state[part].clear();
    for (const [key, row] of Object.entries(news.set || {})) state[part].set(key, row);
    for (const key of news.gone || []) state[part].delete(key);
    parts.push(part);
  }
  if (frame.story) {
    state.story = frame.story.all ? frame.story.add : [...state.story, ...frame.story.add];
    if (state.story.length > 5000) state.story = state.story.slice(-5000);
    parts.push("story");
  }
  tell(parts);
}

async function read(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length) take(JSON.parse(data.join("\n")));
    }
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function follow(onRefused) {
  let wait = 500;
  for (;;) {
    try {
      const response = await fetch("api/stream", { headers: headers(), cache: "no-store" });
      if (response.status === 401 || response.status === 403) {
        await onRefused(response.status, (await response.text()).trim());
        continue;
      }
      if (!response.ok) throw new Error(`the server answers ${response.status}`);
      state.connected = true;
      state.problem = null;
      wait = 500;
      tell(["connection"]);
      await read(response.body);
      throw new Error("the server has closed the stream");
    } catch (error) {
      state.connected = false;
      state.problem = error.message;
      tell(["connection"]);
    }
    await pause(wait);
    wait = Math.min(wait * 2, LONGEST_PAUSE);
  }
}

export function mainResource() {
  const chosen = localStorage.getItem("aliquot-resource");
  const known = state.cluster ? state.cluster.resources : [];
  return known.includes(chosen) ? chosen : known[0] || "cpu";
}

export function chooseResource(name) {
  localStorage.setItem("aliquot-resource", name);
  tell(["resource"]);
}

// Quotas as rows of a tree: each with its depth, children behind their parent; those of one tree together.
export function quotaTree(order, closed = new Set()) {
  const children = new Map();
  for (const [name, row] of state.quotas) {
    const parent = row.parent && state.quotas.has(row.parent) ? row.parent : "";
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(name);
  }
  const tree = (name) => state.quotas.get(name).tree || "";
  for (const names of children.values()) names.sort((a, b) => (tree(a) === tree(b) ? order(a, b) : tree(a) < tree(b) ? -1 : 1));
  const found = [];
  const stack = [...(children.get("") || [])].reverse().map((name) => [name, 0]);
  while (stack.length) {
    const [name, depth] = stack.pop();
    const below = children.get(name) || [];
    found.push({ name, depth, leaf: !below.length, closed: closed.has(name), row: state.quotas.get(name) });
    if (closed.has(name)) continue;
    for (const child of [...below].reverse()) stack.push([child, depth + 1]);
  }
  return found;
}

export const hasBranches = () => [...state.quotas.values()].some((row) => row.parent && state.quotas.has(row.parent));

// The teams that cells name by number: quotas, and namespaces whose pods have none.
export function teamsByIndex() {
  const found = new Map();
  for (const [name, row] of state.quotas) found.set(row.index, { name, short: shortQuota(name, 44), index: row.index, href: `#/quotas/${encodeURIComponent(name)}` });
  for (const [key, row] of state.teams) {
    const name = `${key.slice(0, -1)} (no quota)`;
    found.set(row.index, { name, short: name, index: row.index, href: null });
  }
  return found;
}

// A quota's name where there is little room: without its namespace, unless another one is called the same.
export function shortQuota(name, most) {
  const bare = name.slice(name.lastIndexOf("/") + 1);
  const alike = bare !== name && [...state.quotas.keys()].some((each) => each !== name && each.endsWith(bare) && each.slice(each.lastIndexOf("/") + 1) === bare);
  return short(alike ? name : bare, most);
}

export const quotaIndex = (name) => (state.quotas.get(name) || { index: -1 }).index;

// How a policy calls the share that a quota has now; null where it has none.
export const shareName = () => ({ hierarchy: "Runtime", queues: "Deserved" })[state.cluster?.policy] || null;
