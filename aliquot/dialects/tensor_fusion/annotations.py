"""TensorFusion's annotations on pods: what is asked for of GPUs, and which were chosen.

They speak for the whole pod, whatever its containers are. What is nonsense is refused by name.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import TENSOR_FUSION, Manifest
from aliquot.dialects.core.objects import Metadata

PREFIX = f"{TENSOR_FUSION}/"
GPU_IDS = f"{PREFIX}gpu-ids"

_COMPUTE = ("tflops-request", "tflops-limit")
_ASKING = (
    *(*_COMPUTE, "vram-request", "vram-limit", "compute-percent-request"),
    *("compute-percent-limit", "gpu-count", "gpu-indices", "gpu-model", "vendor", "gpupool"),
    *("isolation", "dedicated-gpu"),
)
"""Whoever has one of these asks for GPUs."""
_KNOWN = {
    *(*_ASKING, "gpu-ids", "qos", "partition-id", "container-gpu-count", "container-gpus"),
    *("is-local-gpu", "workload-profile", "inject-container", "disable-features"),
    *("eviction-protection", "autoscale", "gang-enabled", "gang-min-members", "gang-timeout"),
    *("gang-group-key", "gang-desired-members", "gang-required-members"),
}
_LIKE_A_REQUEST = re.compile(r"tflops|vram|gpu|compute|memory|percent|request|limit")
_ISOLATIONS = ("shared", "soft", "hard", "partitioned")
_QOS = ("low", "medium", "high", "critical")
_MOST_GPUS = 128
_HIGHEST_INDEX = 9999
_PERCENT = 100_000
"""A hundred percent, exact to a thousandth of one."""
_PARTS = 10
"""The parts of a device in a thousandth of a percent."""

RequestAndLimit = tuple[int | None, int | None]
"""A request and a limit, as far as they are written."""

UNSET: RequestAndLimit = (None, None)


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What the annotations of a pod ask for."""

    tflops: RequestAndLimit = UNSET
    vram: RequestAndLimit = UNSET
    percent: RequestAndLimit = UNSET
    """Of the compute of a device, in parts of it."""
    count: int = 1
    whole: bool = False
    """Does it want a device to itself?"""
    dedicated: bool = False
    """Does it want all that a device has, whatever that is?"""
    model: str = ""
    vendor: str = ""
    pool: str = ""
    indices: tuple[int, ...] = ()


def requests_gpus(metadata: Metadata) -> bool:
    """Does a pod ask for GPUs by annotation?"""
    written = metadata.annotations or {}
    return bool(written) and any(PREFIX + key in written for key in _ASKING)


def requests_compute(metadata: Metadata) -> bool:
    """Does a pod ask for TFLOPs by annotation?"""
    written = metadata.annotations or {}
    return any(PREFIX + key in written for key in _COMPUTE)


def read_request(
    metadata: Metadata, manifest: Manifest, field: str = "metadata"
) -> GpuRequest | None:
    """What the annotations of a pod ask for; None if they ask for no GPUs."""
    if not requests_gpus(metadata):
        return None
    said = _Annotations(manifest, f"{field}.annotations", metadata.annotations or {})
    said.choice("qos", _QOS)
    dedicated = said.choice("dedicated-gpu", ("true", "false")) == "true"
    count, indices = _count(said), _indices(said)
    if indices and len(indices) < count:
        raise said.error("gpu-indices", f"names {len(indices)} GPUs, the pod asks for {count}")
    return GpuRequest(
        tflops=_pair(said, "tflops"),
        vram=_pair(said, "vram"),
        percent=_percent(said),
        count=count,
        whole=said.choice("isolation", _ISOLATIONS) == "shared" or dedicated,
        dedicated=dedicated,
        model=said.word("gpu-model"),
        vendor=said.word("vendor"),
        pool=said.word("gpupool"),
        indices=indices,
    )


def devices(metadata: Metadata, manifest: Manifest, field: str = "metadata") -> tuple[str, ...]:
    """The names of the devices that were chosen for a pod."""
    said = _Annotations(manifest, f"{field}.annotations", metadata.annotations or {})
    return tuple(dict.fromkeys(said.words("gpu-ids")))


def unknown_keys(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Keys that look like a request and are none, each with the one that may have been meant."""
    for key in metadata.annotations or {}:
        group, _, word = key.partition("/")
        if group == TENSOR_FUSION and word not in _KNOWN and _LIKE_A_REQUEST.search(word):
            close = difflib.get_close_matches(word, sorted(_KNOWN), 1)
            yield key, PREFIX + close[0] if close else ""


@dataclass(frozen=True, slots=True)
class _Annotations:
    """The annotations of an object, and where they stand."""

    manifest: Manifest
    field: str
    values: Mapping[str, Any]

    def error(self, key: str, problem: str) -> Exception:
        return self.manifest.error(self.place(key), problem)

    def place(self, key: str) -> str:
        return f"{self.field}[{PREFIX}{key}]"

    def word(self, key: str) -> str:
        value = self.values.get(PREFIX + key)
        if isinstance(value, dict | list):
            raise self.error(key, "must be text")
        return to_text(value).strip()

    def words(self, key: str) -> list[str]:
        return [word.strip() for word in self.word(key).split(",") if word.strip()]

    def amount(self, key: str, resource: str) -> int | None:
        word = self.word(key)
        return amounts.read_one(word, resource, self.manifest, self.place(key)) if word else None

    def choice(self, key: str, choices: Sequence[str]) -> str:
        word = self.word(key)
        if word and word not in choices:
            raise self.error(key, f"{word!r} is none of {', '.join(choices)}")
        return word

    def number(self, key: str, word: str, low: int, high: int) -> int:
        is_number = word.isascii() and word.isdigit() and len(word) <= len(str(high))
        if not is_number or not low <= int(word) <= high:
            raise self.error(key, f"{word!r} is no whole number from {low} to {high}")
        return int(word)


def _count(said: _Annotations) -> int:
    word = said.word("gpu-count")
    return said.number("gpu-count", word, 1, _MOST_GPUS) if word else 1


def _indices(said: _Annotations) -> tuple[int, ...]:
    key = "gpu-indices"
    found = [said.number(key, word, 0, _HIGHEST_INDEX) for word in said.words(key)]
    if len(set(found)) < len(found):
        raise said.error(key, "names a GPU twice")
    return tuple(sorted(found))


def _pair(said: _Annotations, what: str, resource: str = "") -> RequestAndLimit:
    """A request and a limit, in this order."""
    keys = (f"{what}-request", f"{what}-limit")
    request, limit = (said.amount(key, resource or what) for key in keys)
    if request is not None and limit is not None and request > limit:
        numbers = f"request {said.word(keys[0])}, limit {said.word(keys[1])}"
        raise said.error(keys[0], f"is above its limit: {numbers}")
    return request, limit


def _percent(said: _Annotations) -> RequestAndLimit:
    """A part of the compute of a device; whoever asks for that cannot ask for TFLOPs as well."""
    what = "compute-percent"
    pair = _pair(said, what, "tflops")
    for which, amount in zip(("request", "limit"), pair, strict=True):
        if amount is not None and amount > _PERCENT:
            key = f"{what}-{which}"
            raise said.error(key, f"{said.word(key)} is not between 0 and 100")
    for key in _COMPUTE if pair != UNSET else ():
        if said.word(key):
            raise said.error(key, "compute is asked for in TFLOPs or in percent, not both")
    request, limit = (None if amount is None else amount * _PARTS for amount in pair)
    return request, limit
