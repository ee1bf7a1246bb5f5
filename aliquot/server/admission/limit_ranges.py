"""LimitRanges: what containers of a namespace request by default, and the least and most they may.

The rules and words are those of kube-apiserver's LimitRanger. What a pod requests decides where it
runs, so a LimitRange counts here as it does on a cluster.
"""

from collections import Counter
from collections.abc import Iterator

from aliquot.json import Body
from aliquot.server.admission.quota_usage import nanos, text
from aliquot.server.http.refusals import forbidden
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.store import Store

_RANGES = "limitranges"
_SET = "kubernetes.io/limit-ranger"
_SIDES = (("limits", "default"), ("requests", "defaultRequest"))


def limit(store: Store, kind: Kind, pod: Body) -> None:
    """Fill in what the LimitRanges of a new pod's namespace say; refuse what exceeds them."""
    namespace, spec = pod["metadata"].get("namespace", ""), pod["spec"]
    items = [
        item
        for entry in store.all(_RANGES, namespace)
        for item in (entry.read().get("spec") or {}).get("limits") or ()
    ]
    if not items:
        return
    said = [word for item in items for word in _fill(spec, item)]
    if said:
        notes = pod["metadata"].setdefault("annotations", {})
        notes[_SET] = f"LimitRanger plugin set: {'; '.join(said)}"
    problems = [problem for item in items for problem in _exceeded(spec, item)]
    if problems:
        why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden(kind, pod["metadata"].get("name", ""), why)


def _fill(spec: Body, item: Body) -> Iterator[str]:
    """Fill in the defaults of containers; yields what was filled in."""
    if item.get("type") != "Container":
        return
    for prefix, containers in (("container", "containers"), ("init container", "initContainers")):
        for each in spec.get(containers) or ():
            set_words: dict[str, list[str]] = {}
            for side, default in _SIDES:
                written = (each.get("resources") or {}).get(side) or {}
                missing = {
                    key: value
                    for key, value in (item.get(default) or {}).items()
                    if key not in written
                }
                if missing:
                    each.setdefault("resources", {})[side] = {**written, **missing}
                    set_words[side] = sorted(missing)
            for side, word in (("requests", "request"), ("limits", "limit")):
                if side in set_words:
                    name = each.get("name", "")
                    yield f"{', '.join(set_words[side])} {word} for {prefix} {name}"


def _exceeded(spec: Body, item: Body) -> Iterator[str]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if item.get("type") == "Container":
        for each in containers:
            yield from _compare(item, *(_amounts([each], side) for side in ("requests", "limits")))
    elif item.get("type") == "Pod":
        running = spec.get("containers") or []
        yield from _compare(item, *(_amounts(running, side) for side in ("requests", "limits")))


def _compare(item: Body, requests: Counter[str], limits: Counter[str]) -> Iterator[str]:
    for word, bounds, first, second in (
        ("minimum", item.get("min") or {}, ("request", requests), ("limit", limits)),
        ("maximum", item.get("max") or {}, ("limit", limits), ("request", requests)),
    ):
        for resource, bound in sorted(bounds.items()):
            about = f"{word} {resource} usage per {item['type']} is {bound}"
            if resource not in first[1]:
                yield f"{about}.  No {first[0]} is specified"
                continue
            for name, amounts in (first, second):
                amount, most = amounts.get(resource), nanos(bound)
                beyond = amount is not None and (
                    amount < most if word == "minimum" else amount > most
                )
                if amount is not None and beyond:
                    yield f"{about}, but {name} is {text(amount, bound)}"
                    break


def _amounts(containers: list[Body], side: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in containers:
        for key, value in ((each.get("resources") or {}).get(side) or {}).items():
            found[key] += nanos(value)
    return found
