// Amounts, times and names as people read them. Amounts come as whole numbers: cpu and TFLOPs in
// thousandths, memory in bytes, all else in units.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];
const MILLI = /(^|\.)cpu$|tflops$/;
const BYTES = /memory$|storage$|vram$|^hugepages-/;

export const UNLIMITED = 2 ** 60;

export function amount(resource, value) {
  if (value === null || value === undefined) return "∞";
  if (/gpu-memory$/.test(resource)) return `${scaled(value, 1000, DECIMAL)} GB`;
  if (MILLI.test(resource)) return plain(value / 1000);
  if (BYTES.test(resource)) return scaled(value, 1024, BINARY);
  return scaled(value, 1000, DECIMAL);
}

function scaled(value, step, units) {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= step * 10 && unit < units.length - 1 && (step === 1024 || Math.abs(rest) >= 100000)) {
    rest /= step;
    unit += 1;
  }
  if (step === 1024 && Math.abs(rest) >= 1024 && unit < units.length - 1) {
    rest /= step;
    unit += 1;
  }
  return plain(rest) + units[unit];
}

function plain(value) {
  if (Math.abs(value) >= 10000) return Math.round(value).toLocaleString("en");
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

export function shortResource(name) {
  const known = { "nvidia.com/gpu": "GPU", "amd.com/gpu": "AMD GPU", cpu: "CPU", tflops: "TFLOPs", vram: "VRAM" };
  if (known[name]) return known[name];
  if (/\/gpu-memory$/.test(name)) return "GPU memory";
  return name.replace(/^nvidia\.com\//, "").replace(/^gpu\.aliquot\.dev\//, "");
}

export function amounts(figures, order = []) {
  const rank = (name) => (order.includes(name) ? order.indexOf(name) : order.length);
  const names = Object.keys(figures || {}).filter((name) => name !== "pods").sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  return names.map((name) => `${amount(name, figures[name])} ${shortResource(name)}`).join(", ") || "nothing";
}

export function percent(part, whole) {
  if (!whole) return "";
  const value = (part / whole) * 100;
  return `${value > 0 && value < 1 ? "<1" : Math.floor(value + 1e-9)}%`;
}

export function ago(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function clock(seconds, relative) {
  if (relative) return `${Number(seconds.toFixed(1))} s`;
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

// The name of a resource as a heading.
export const titled = (text) => (text === "memory" ? "Memory" : text);

export const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// Names in the order that people expect, digits by value.
export const natural = new Intl.Collator("en", { numeric: true }).compare;
