// The answer of `aliquot explain pod`, in the same words.

import { h } from "./dom.js";
import { ago, plural } from "./format.js";

export function explanation(found) {
  const parts = [h("h2", {}, found.pod), h("p", {}, h("span.reason", {}, found.reason || found.phase), " ", found.message || "")];
  if (found.estimate) parts.push(estimate(found.estimate));
  if (found.cures) {
    parts.push(h("h3", {}, "What would help"), found.cures.length ? h("ol.cures", {}, ...found.cures.map(cure)) : h("p.quiet", {}, "No change of up to three objects would let it start."));
  }
  const facts = [["Quota", found.quota || "none"], ["Policy", found.policy]];
  if (found.position) facts.push(["Ahead of it", `${found.position.ahead} in all, ${found.position.inQuota} in its quota`]);
  if (found.phase === "Pending" && !found.estimate) facts.push(["May start", "unknown: too little is known of when running pods end"]);
  parts.push(h("dl.facts", {}, ...facts.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
  if (found.gates?.length) {
    const order = [...found.gates].sort((a, b) => a.passes - b.passes);
    parts.push(h("h3", {}, "Gates"), h("ul.gates", {}, ...order.map((each) =>
      h(each.passes ? "li.passes" : "li.refuses", {}, h("b", {}, `${each.passes ? "✓" : "✗"} ${each.gate}`), each.message ? ` ${each.message}` : ""))));
  }
  if (found.nodes) {
    const refused = (found.nodes.refused || []).map((each) => h("li", {}, `${plural(each.count, "node")}: ${each.reason}`));
    parts.push(h("h3", {}, "Nodes"), h("p", {}, `${found.nodes.feasible} of ${plural(found.nodes.total, "node")} could hold it now.`), refused.length ? h("ul", {}, ...refused) : null);
  }
  if (found.preemption) {
    const victims = found.preemption.victims || [];
    parts.push(h("h3", {}, "Preemption"), h("p", {}, found.preemption.why || (found.preemption.possible ? "These would make way for it:" : "not possible")),
      victims.length ? h("ul", {}, ...victims.map((each) => h("li", {}, typeof each === "string" ? each : each.pod))) : null);
  }
  return h("div", {}, ...parts.filter(Boolean));
}

function estimate({ seconds, p10, p90, basis }) {
  const soon = seconds < 1;
  return h("div.estimate", {}, h("span.quiet", {}, soon ? "May start" : "May start in"), h("b", {}, soon ? "at any moment" : ago(seconds)), h("span.quiet", {}, `${ago(p10) === ago(p90) ? "" : `${ago(p10)} to ${ago(p90)}; `}${basis}`));
}

// A cure, with its changes to copy: as a patch for kubectl, or as the objects to add.
function cure(each) {
  const evicts = each.evicts?.length ? h("div.quiet", {}, `evicts ${each.evicts.join(", ")}`) : null;
  const commands = (each.changes || []).map(command).filter(Boolean);
  return h("li", {}, each.summary, evicts, commands.length ? h("details", {}, h("summary", {}, "as a command"), h("pre.yaml", { tabindex: "0" }, commands.join("\n"))) : null);
}

function command({ how, object, patch }) {
  if (!object || (how === "patch" && !patch)) return null;
  const name = `${object.kind.toLowerCase()} ${object.name}${object.namespace ? ` -n ${object.namespace}` : ""}`;
  if (how === "patch") return `kubectl patch ${name} --type merge -p '${JSON.stringify(patch)}'`;
  if (how === "delete") return `kubectl delete ${name}`;
  return null;
}
