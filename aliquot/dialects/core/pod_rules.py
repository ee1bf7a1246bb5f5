"""What pods ask of other pods and of their node's ports: affinity, topology spread, host ports.

What depends on the pod itself is resolved here, as an API server and kube-scheduler do: its
namespace, the values of `matchLabelKeys`, whether it is one of the pods that it spreads. Rules that
mean the same are equal values, in whatever order they were written, because the engine counts pods
once for each rule that is different.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import structs

from aliquot.dialects.core.label_selectors import canonical, requirements
from aliquot.dialects.core.manifest import Manifest, refuse_namespace
from aliquot.dialects.core.objects import (
    INT32_MAX,
    Container,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodWire,
    TopologySpreadConstraint,
)
from aliquot.engine import (
    NO_RULES,
    AffinityTerm,
    DefaultConstraint,
    HostPort,
    PodRules,
    PodSelector,
    Requirement,
    SpreadConstraint,
    requirement_matches,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_HIGHEST_WEIGHT = 100
_HIGHEST_PORT = 65_535
_ANY_ADDRESS = "0.0.0.0"

Labels = Mapping[str, str]
_Weighted = tuple[int, AffinityTerm]


def pod_rules(spec: PodSpec, manifest: Manifest, labels: Labels, field: str = "spec") -> PodRules:
    """The rules of a pod with these labels; `field` is the field of its spec."""
    if not has_rules(spec):
        return NO_RULES
    affinity, anti_affinity, preferred = _affinities(spec, manifest, labels, field)
    found = PodRules(
        affinity=affinity,
        anti_affinity=anti_affinity,
        preferred=preferred,
        spread=_spread(spec, manifest, labels, f"{field}.topologySpreadConstraints"),
        ports=tuple(sorted({each for _, each in host_ports(spec)}, key=_port_order)),
    )
    return NO_RULES if found == NO_RULES else found


def check(spec: PodSpec | None, manifest: Manifest, field: str) -> None:
    """Refuse rules that make no sense, whatever labels the pod has."""
    if spec is not None:
        _check_ports(spec, manifest, field)
        pod_rules(spec, manifest, {}, field)


def has_rules(spec: PodSpec) -> bool:
    """Does a pod ask anything of other pods or of ports? Most do not, and that must cost little."""
    affinity = spec.affinity
    if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
        return True
    if spec.topology_spread_constraints:
        return True
    for containers in (spec.containers, spec.init_containers):
        for each in containers or ():
            if each.ports and any(port.host_port or spec.host_network for port in each.ports):
                return True
    return False


def without_rules(spec: PodSpec) -> PodSpec:
    """The spec of a pod without its rules, for one that runs and whose rules cannot be read."""
    affinity = spec.affinity
    if affinity is not None:
        affinity = structs.replace(affinity, pod_affinity=None, pod_anti_affinity=None)
    words = ("containers", "init_containers")
    kept = {word: [_without_ports(each) for each in getattr(spec, word) or ()] for word in words}
    return structs.replace(spec, affinity=affinity, topology_spread_constraints=None, **kept)


def _without_ports(container: Container) -> Container:
    return structs.replace(container, ports=None)


def label_keys(spec: PodSpec) -> tuple[str, ...]:
    """The keys of the pod's own labels by which its rules differ from those of its template."""
    keys: set[str] = set()
    affinity = spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in _terms(side):
            keys.update(term.match_label_keys or (), term.mismatch_label_keys or ())
    for each in spec.topology_spread_constraints or ():
        selector = each.label_selector or LabelSelector()
        keys.update(each.match_label_keys or (), selector.match_labels or ())
        keys.update(expression.key for expression in selector.match_expressions or ())
    return tuple(sorted(keys))


# Affinity to pods.


def _affinities(
    spec: PodSpec, manifest: Manifest, labels: Labels, field: str
) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...], tuple[_Weighted, ...]]:
    """What a pod requires near it, what far from it, and what it prefers."""
    affinity = spec.affinity
    if affinity is None:
        return (), (), ()
    required: list[tuple[AffinityTerm, ...]] = []
    weights: Counter[AffinityTerm] = Counter()
    for side, word, sign in (
        (affinity.pod_affinity, "podAffinity", 1),
        (affinity.pod_anti_affinity, "podAntiAffinity", -1),
    ):
        at = f"{field}.affinity.{word}"
        required.append(_required(side, manifest, labels, at))
        for weight, term in _preferred(side, manifest, labels, at):
            weights[term] += sign * weight
    preferred = [(weight, term) for term, weight in weights.items() if weight]
    near, far = required
    return near, far, tuple(sorted(preferred, key=lambda each: (_term_order(each[1]), each[0])))


def _required(
    side: PodAffinity | None, manifest: Manifest, labels: Labels, field: str
) -> tuple[AffinityTerm, ...]:
    written = side.required_during_scheduling_ignored_during_execution if side else None
    found = {
        _term(each, manifest, labels, f"{field}.{_REQUIRED}[{index}]")
        for index, each in enumerate(written or ())
    }
    return tuple(sorted(found, key=_term_order))


def _preferred(
    side: PodAffinity | None, manifest: Manifest, labels: Labels, field: str
) -> Iterator[_Weighted]:
    written = side.preferred_during_scheduling_ignored_during_execution if side else None
    for index, each in enumerate(written or ()):
        at = f"{field}.{_PREFERRED}[{index}]"
        if not 1 <= each.weight <= _HIGHEST_WEIGHT:
            problem = f"{each.weight} is not between 1 and {_HIGHEST_WEIGHT}"
            manifest.refuse(f"{at}.weight", problem)
        term = each.pod_affinity_term or PodAffinityTerm()
        yield each.weight, _term(term, manifest, labels, f"{at}.podAffinityTerm")


def _terms(side: PodAffinity | None) -> Iterator[PodAffinityTerm]:
    """All terms of an affinity, as they are written."""
    if side is None:
        return
    yield from side.required_during_scheduling_ignored_during_execution or ()
    for each in side.preferred_during_scheduling_ignored_during_execution or ():
        if each.pod_affinity_term is not None:
            yield each.pod_affinity_term


def _term(written: PodAffinityTerm, manifest: Manifest, labels: Labels, field: str) -> AffinityTerm:
    """A term; without namespaces and without a selector of them, the pod's own is meant."""
    if not written.topology_key:
        manifest.refuse(f"{field}.topologyKey", "is missing")
    for index, name in enumerate(written.namespaces or ()):
        refuse_namespace(name, manifest, f"{field}.namespaces[{index}]")
    namespaces = tuple(sorted(set(written.namespaces or ())))
    selector = None
    if written.namespace_selector is not None:
        at = f"{field}.namespaceSelector"
        selector = canonical(requirements(written.namespace_selector, manifest, at))
    elif not namespaces:
        namespaces = (manifest.namespace,)
    return AffinityTerm(
        PodSelector(namespaces, selector, _term_labels(written, manifest, labels, field)),
        written.topology_key,
    )


def _term_labels(
    written: PodAffinityTerm, manifest: Manifest, labels: Labels, field: str
) -> tuple[Requirement, ...] | None:
    """The labels of a term's pods.

    `matchLabelKeys` and `mismatchLabelKeys` are merged when a server stores the pod, by the labels
    that it has then: they are not merged again.
    """
    selector, same = written.label_selector, written.match_label_keys or []
    other = written.mismatch_label_keys or []
    _check_keys(selector, same, other, manifest, field)
    if selector is None:
        return None
    found = requirements(selector, manifest, f"{field}.labelSelector")
    if not _is_stored(manifest):
        found += [Requirement(key, "In", (labels[key],)) for key in same if key in labels]
        found += [Requirement(key, "NotIn", (labels[key],)) for key in other if key in labels]
    return canonical(found)


def _check_keys(
    selector: LabelSelector | None,
    same: list[str],
    other: list[str],
    manifest: Manifest,
    field: str,
) -> None:
    """Refuse keys of labels without a selector, or that are in it (or in the other list) too."""
    for word, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            manifest.refuse(f"{field}.{word}", "must not be there without a labelSelector")
    if selector is None or not same:
        return
    used = set(selector.match_labels or ())
    used.update(each.key for each in selector.match_expressions or ())
    for index, key in enumerate(same):
        if key in other:
            manifest.refuse(f"{field}.matchLabelKeys[{index}]", f"{key} is in mismatchLabelKeys")
        if key in used and not _is_stored(manifest):
            manifest.refuse(f"{field}.matchLabelKeys[{index}]", f"{key} is in the labelSelector")


def _is_stored(manifest: Manifest) -> bool:
    """Is it a pod as a server has stored it, with what the server adds?"""
    content = manifest.content
    if not isinstance(content, PodWire):
        return False
    return bool(content.metadata.uid and content.metadata.resource_version)


def _term_order(term: AffinityTerm) -> tuple[str, str]:
    return term.topology_key, repr(term.selector)


# Topology spread.


def _spread(
    spec: PodSpec, manifest: Manifest, labels: Labels, field: str
) -> tuple[SpreadConstraint, ...]:
    written = spec.topology_spread_constraints or []
    check_repeats(written, manifest.refuse, field)
    found = {
        _constraint(each, manifest, labels, f"{field}[{index}]")
        for index, each in enumerate(written)
    }
    return tuple(sorted(found, key=_constraint_order))


def default_spread(
    defaults: Iterable[DefaultConstraint],
    namespace: str,
    selected: tuple[Requirement, ...],
    labels: Labels,
) -> tuple[SpreadConstraint, ...]:
    """The constraints of a pod that states none, over the pods with such labels."""
    written = (
        TopologySpreadConstraint(
            max_skew=each.max_skew,
            topology_key=each.topology_key,
            when_unsatisfiable=_UNSATISFIABLE[0 if each.required else 1],
        )
        for each in defaults
    )
    found = (constraint(each, namespace, selected, labels) for each in written)
    return tuple(sorted(found, key=_constraint_order))


def _constraint(
    written: TopologySpreadConstraint, manifest: Manifest, labels: Labels, field: str
) -> SpreadConstraint:
    """A constraint. One with an empty selector counts the pod itself, and no other.

    `matchLabelKeys` count here by the labels that the pod has now, as kube-scheduler reads them.
    """
    check_constraint(written, manifest.refuse, field)
    selector, keys = written.label_selector, written.match_label_keys or []
    _check_keys(selector, keys, [], manifest, field)
    found: tuple[Requirement, ...] | None = None
    if selector is not None:
        merged = requirements(selector, manifest, f"{field}.labelSelector")
        merged += [Requirement(key, "In", (labels[key],)) for key in keys if key in labels]
        found = canonical(merged)
    return constraint(written, manifest.namespace, found, labels)


def constraint(
    written: TopologySpreadConstraint,
    namespace: str,
    selected: tuple[Requirement, ...] | None,
    labels: Labels,
) -> SpreadConstraint:
    """A constraint over the pods of a namespace with such labels; None: no pod."""
    return SpreadConstraint(
        selector=PodSelector((namespace,), None, selected or None),
        topology_key=written.topology_key,
        max_skew=written.max_skew,
        min_domains=1 if written.min_domains is None else written.min_domains,
        required=written.when_unsatisfiable == "DoNotSchedule",
        honors_affinity=written.node_affinity_policy != "Ignore",
        honors_taints=written.node_taints_policy == "Honor",
        counts_itself=selected is not None
        and all(requirement_matches(each, labels) for each in selected),
    )


def check_repeats(
    written: Iterable[TopologySpreadConstraint], refuse: Callable[[str, str], None], field: str
) -> None:
    """Refuse a second constraint by one key that does the same where it cannot be met."""
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(written):
        kind = (each.topology_key, each.when_unsatisfiable)
        if kind in seen:
            problem = "another constraint has this topologyKey and whenUnsatisfiable already"
            refuse(f"{field}[{index}]", problem)
        seen.add(kind)


def check_constraint(
    written: TopologySpreadConstraint, refuse: Callable[[str, str], None], field: str
) -> None:
    """Refuse what makes no sense in a constraint, apart from its selector."""
    if not written.topology_key:
        refuse(f"{field}.topologyKey", "is missing")
    for word, number in (("maxSkew", written.max_skew), ("minDomains", written.min_domains)):
        if number is not None and not 1 <= number <= INT32_MAX:
            refuse(f"{field}.{word}", f"is {number}, must be at least 1")
    for word, value, known in (
        ("whenUnsatisfiable", written.when_unsatisfiable, _UNSATISFIABLE),
        ("nodeAffinityPolicy", written.node_affinity_policy, _POLICIES),
        ("nodeTaintsPolicy", written.node_taints_policy, _POLICIES),
    ):
        if value is not None and value not in known:
            problem = f"{value!r} is none of {', '.join(known)}" if value else "is missing"
            refuse(f"{field}.{word}", problem)
    if written.min_domains is not None and written.when_unsatisfiable == "ScheduleAnyway":
        refuse(f"{field}.minDomains", "only counts where whenUnsatisfiable is DoNotSchedule")


def _constraint_order(each: SpreadConstraint) -> tuple[str, bool, str]:
    return each.topology_key, each.required, repr(each)


# Host ports.


def host_ports(spec: PodSpec, field: str = "spec") -> list[tuple[str, HostPort]]:
    """The ports of its node that a pod asks for, each with its field.

    They are those of its containers and sidecars. In the network of its node (`hostNetwork`) every
    port of a container is one of the node's.
    """
    found = []
    for word, containers in (
        ("initContainers", _sidecars(spec.init_containers)),
        ("containers", enumerate(spec.containers or ())),
    ):
        for index, container in containers:
            for number, port in enumerate(container.ports or ()):
                wanted = port.host_port or (port.container_port if spec.host_network else 0)
                if wanted:
                    at = f"{field}.{word}[{index}].ports[{number}]"
                    ip, protocol = port.host_ip or _ANY_ADDRESS, port.protocol or "TCP"
                    found.append((at, HostPort(wanted, protocol, ip)))
    return found


def _check_ports(spec: PodSpec, manifest: Manifest, field: str) -> None:
    """Refuse ports that no node has, and unknown protocols, of all containers."""
    for word, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for index, container in enumerate(containers or ()):
            for number, port in enumerate(container.ports or ()):
                at = f"{field}.{word}[{index}].ports[{number}]"
                wanted, protocol = port.host_port or 0, port.protocol or "TCP"
                if not 0 <= wanted <= _HIGHEST_PORT:
                    problem = f"{wanted} is not between 1 and {_HIGHEST_PORT}"
                    manifest.refuse(f"{at}.hostPort", problem)
                if protocol not in _PROTOCOLS:
                    problem = f"{protocol!r} is none of {', '.join(_PROTOCOLS)}"
                    manifest.refuse(f"{at}.protocol", problem)


def _sidecars(containers: list[Container] | None) -> Iterable[tuple[int, Container]]:
    """The init containers that run as long as the pod does, with their indexes."""
    return (
        (index, each)
        for index, each in enumerate(containers or ())
        if each.restart_policy == "Always"
    )


def _port_order(port: HostPort) -> tuple[int, str, str]:
    return port.port, port.protocol, port.ip
