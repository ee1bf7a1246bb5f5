"""HyperNodes: which nodes are near each other, as a tree of switches, blocks or racks.

A HyperNode has a tier, a whole number that grows from narrow to wide, and members: nodes, or
HyperNodes of lower tiers. In a tier, the domain of a node is the widest HyperNode up to that tier
that it is in, which the engine sees as a label of the node. What makes no tree (a member of the
same or a higher tier, a second parent) is left out; validation names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from aliquot.dialects.core.label_selectors import requirements
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.topology import NO_TIERS, Tiers
from aliquot.dialects.volcano.objects import HyperNodeSpec, HyperNodeWire, MemberWire
from aliquot.engine import Requirement, requirement_matches

KIND = "HyperNode"
NODE = "Node"
Labels = tuple[tuple[str, str], ...]
Problem = tuple[Manifest, str, str]


def spec(manifest: Manifest) -> HyperNodeSpec:
    """The spec of a HyperNode; an empty one if it has none."""
    content = manifest.content
    assert isinstance(content, HyperNodeWire)
    return content.spec or HyperNodeSpec()


def check(manifest: Manifest) -> None:
    """Refuse a HyperNode whose members cannot be read."""
    if spec(manifest).tier is None:
        manifest.refuse("spec.tier", "is missing")
    for number, each in enumerate(spec(manifest).members or ()):
        field = f"spec.members[{number}]"
        if each.type not in (NODE, KIND):
            manifest.refuse(f"{field}.type", f"{each.type!r} is neither {NODE} nor {KIND}")
        _Member(each, manifest, f"{field}.selector")


class _Member:
    """One entry of `members`: the names and labels that it selects."""

    def __init__(self, written: MemberWire, manifest: Manifest, field: str) -> None:
        selector = written.selector
        self.type = written.type
        self.name: str | None = None
        self._pattern: re.Pattern[str] | None = None
        self._labels: list[Requirement] | None = None
        ways = selector and (selector.exact_match, selector.regex_match, selector.label_match)
        if selector is None or sum(each is not None for each in ways or ()) != 1:
            problem = "must hold one of exactMatch, regexMatch and labelMatch"
            manifest.refuse(field, problem)
            return
        if selector.exact_match is not None:
            self.name = selector.exact_match.name
        elif selector.regex_match is not None:
            pattern = selector.regex_match.pattern or ""
            try:
                self._pattern = re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                problem = f"{pattern!r} is no regular expression: {error}"
                manifest.refuse(f"{field}.regexMatch.pattern", problem)
        elif selector.label_match is not None:
            self._labels = requirements(selector.label_match, manifest, f"{field}.labelMatch")

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Is an object of this name with these labels a member?"""
        if self.name is not None:
            return self.name == name
        if self._pattern is not None:
            return self._pattern.search(name) is not None
        if self._labels is None:
            return False
        return all(requirement_matches(each, labels) for each in self._labels)


class _HyperNode:
    def __init__(self, manifest: Manifest) -> None:
        written = spec(manifest)
        self.manifest = manifest
        self.name = manifest.name
        self.tier = written.tier or 0
        self.tier_name = written.tier_name or ""
        self.labels = text_map(manifest.metadata.labels, manifest, "metadata.labels")
        self.members = [
            _Member(each, manifest, f"spec.members[{number}].selector")
            for number, each in enumerate(written.members or ())
        ]


class HyperNodes:
    """All HyperNodes of a cluster, and the domains that each node is in."""

    def __init__(self, manifests: Iterable[Manifest] = ()) -> None:
        found = (_HyperNode(each) for each in manifests if each.kind == KIND)
        self._all = sorted(found, key=lambda each: (each.tier, each.name))
        self._by_name = {each.name: each for each in self._all}
        self._exact: dict[str, list[_HyperNode]] = {}
        self._others: list[tuple[_Member, _HyperNode]] = []
        for each in self._all:
            for member in each.members:
                if member.type == NODE and member.name is not None:
                    self._exact.setdefault(member.name, []).append(each)
                elif member.type == NODE:
                    self._others.append((member, each))
        self._parents = {each.name: self._parent(each) for each in self._all}
        levels = sorted({each.tier for each in self._all})
        names = sorted({(each.tier_name, each.tier) for each in self._all if each.tier_name})
        self.tiers = Tiers(tuple((tier, _label(tier)) for tier in levels), tuple(names))

    def __bool__(self) -> bool:
        return bool(self._all)

    def _parent(self, child: _HyperNode) -> _HyperNode | None:
        """The narrowest HyperNode of a higher tier of which this one is a member."""
        above = (each for each in self._all if each.tier > child.tier)
        return next((each for each in above if _has_member(each, child)), None)

    def labels(self, node: str, labels: Mapping[str, str]) -> Labels:
        """The domain of a node in each tier, as labels."""
        chain: dict[int, str] = {}
        direct = [*self._exact.get(node, ())]
        direct += [each for member, each in self._others if member.selects(node, labels)]
        for first in sorted(direct, key=lambda each: (each.tier, each.name)):
            each: _HyperNode | None = first
            while each is not None:
                chain.setdefault(each.tier, each.name)
                each = self._parents[each.name]
        found, domain = [], None
        for tier, label in self.tiers.levels:
            domain = chain.get(tier, domain)
            if domain is not None:
                found.append((label, domain))
        return tuple(found)

    def problems(self, nodes: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
        """What is wrong with each: the object, the field, and the problem."""
        for each in self._all:
            for number, member in enumerate(each.members):
                field = f"spec.members[{number}]"
                others = nodes if member.type == NODE else self._labels_by_name()
                chosen = [name for name, labels in others.items() if member.selects(name, labels)]
                if not chosen:
                    yield each.manifest, field, f"selects no {member.type}"
                for name in chosen if member.type == KIND else ():
                    other = self._by_name[name]
                    if other.tier >= each.tier:
                        problem = f"selects HyperNode {name} of tier {other.tier}, which is not"
                        problem += f" below tier {each.tier}: it is not considered"
                        if self._leads_to(other, each):
                            problem += ", as it would be a cycle"
                        yield each.manifest, field, problem
                    elif self._parents[name] is not each:
                        parent = self._parents[name]
                        words = f"selects HyperNode {name}, which is a member of"
                        problem = f"{words} {parent.name if parent else ''}: that one counts"
                        yield each.manifest, field, problem

    def _labels_by_name(self) -> dict[str, Mapping[str, str]]:
        return {each.name: each.labels for each in self._all}

    def _leads_to(self, start: _HyperNode, end: _HyperNode) -> bool:
        """Is a HyperNode below another, or that one itself, whatever their tiers?"""
        seen, todo = set[str](), [start]
        while todo:
            each = todo.pop()
            if each is end:
                return True
            if each.name not in seen:
                seen.add(each.name)
                todo += [other for other in self._all if _has_member(each, other)]
        return False


def _has_member(parent: _HyperNode, child: _HyperNode) -> bool:
    return any(
        member.type == KIND and member.selects(child.name, child.labels)
        for member in parent.members
    )


def _label(tier: int) -> str:
    """The label by which the engine knows the domains of a tier; no user can write such a key."""
    return f"{NO_TIERS} {tier}"
