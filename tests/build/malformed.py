"""Malformed input: valid bodies spoiled at random places, and bytes that are hardly JSON.

Everything follows from the random generator that is given, so that a seed repeats a failure.
"""

import copy
import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 10**40, 1.5, -0.0, 1e308, 1e-300),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "x",
        "0",
        "-1",
        "\x00",
        "\ud800",
        "é" * 300,
        "../..",
        "%",
    ),
    *("9" * 500, "1e400", "1e-400", "1Ei", "NaN", "0x1", "true", "null", "2026-01-01T00:00:00Z"),
    *("9999-99-99T99:99:99Z", "a=b,c in (", "*", "/", "a/b/c", "[", "{}", "[]", "\n", "x" * 70_000),
    *([], {}, [[]], [None], [1, "a", {}], {"": ""}, {"a": {"b": [{"c": None}]}}, {"x" * 300: 1}),
    *({"name": None}, [{"name": 1}], [{"name": "a"}, {"name": "a"}], {"matchLabels": []}),
)
"""Values that hardly any field expects."""
_DEEP = (50, 90, 120, 2000, 100_000)
"""Levels of nesting: below and above the limit, and above what a parser that recurses can take."""


def spoil(body: Any, rng: random.Random) -> Any:
    """Put something odd somewhere, take something away, or move it."""
    spoiled = copy.deepcopy(body)
    holders = _holders(spoiled)
    if not holders:
        return _odd(rng)
    holder = rng.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    key = rng.choice(keys)
    match rng.randrange(8):
        case 0:
            del holder[key]
        case 1:
            other = rng.choice(holders)
            holder[key] = copy.deepcopy(other)
        case 2 if isinstance(holder, dict):
            holder[str(_odd(rng))[:300]] = holder.pop(key)
        case 3 if isinstance(holder, dict):
            holder[rng.choice(WORDS)] = _odd(rng)
        case 4 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 5:
            holder[key] = [holder[key]]
        case _:
            holder[key] = _odd(rng)
    return spoiled


WORDS = (
    *("metadata", "spec", "status", "name", "namespace", "generateName", "labels", "annotations"),
    *("finalizers", "ownerReferences", "managedFields", "resourceVersion", "uid", "kind"),
    *("apiVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"),
    *("creationTimestamp", "template", "selector", "replicas", "containers", "initContainers"),
    *("resources", "requests", "limits", "overhead", "min", "max", "parent", "priority"),
    *("priorityClassName", "nodeName", "nodeSelector", "affinity", "tolerations", "volumes"),
    *("topologySpreadConstraints", "conditions", "phase", "allocatable", "capacity", "items"),
)
"""Fields that code looks at."""


def encoded(body: Any, rng: random.Random) -> bytes:
    """JSON, or something that is nearly JSON."""
    dice = rng.random()
    if dice < 0.03:
        return rng.randbytes(rng.randrange(200))
    if dice < 0.035:
        depth = rng.choice(_DEEP)
        opened, closed = rng.choice(((b'{"a":', b"}"), (b"[", b"]")))
        return opened * depth + b"1" + closed * rng.choice((depth, 0))
    # Lone surrogates are written as they are, which is not UTF-8.
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if dice < 0.10:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.randbytes(rng.randrange(1, 4)) + text[at + rng.randrange(3) :]
    if dice < 0.12:
        return text[: rng.randrange(len(text) + 1)]
    if dice < 0.14 and isinstance(body, dict) and body:
        return b"{" + text[1:-1] + b"," + text[1:-1] + b"}"  # every key twice
    return text


def _odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(ODD))


def _holders(body: Any) -> list[Any]:
    """All objects and lists inside that hold something; no recursion, since some are deep."""
    found: list[Any] = []
    left = [body]
    while left:
        each = left.pop()
        if isinstance(each, dict | list) and each:
            found.append(each)
            left.extend(each.values() if isinstance(each, dict) else each)
    return found
