"""TensorFusion's annotations on pods: what a pod requests of GPUs, and which GPUs it has.

They hold for the whole pod, not for a container. A value that cannot be read is refused by its key.
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
_REQUESTING = (
    *(*_COMPUTE, "vram-request", "vram-limit", "compute-percent-request"),
    *("compute-percent-limit", "gpu-count", "gpu-indices", "gpu-model", "vendor", "gpupool"),
    *("isolation", "dedicated-gpu"),
)
"""The keys by which a pod requests GPUs: one of them suffices."""
_KNOWN = {
    *(*_REQUESTING, "gpu-ids", "qos", "partition-id", "container-gpu-count", "container-gpus"),
    *("is-local-gpu", "workload-profile", "inject-container", "disable-features"),
    *("eviction-protection", "autoscale", "gang-enabled", "gang-min-members", "gang-timeout"),
    *("gang-group-key", "gang-desired-members", "gang-required-members"),
}
_LIKE_A_REQUEST = re.compile(r"tflops|vram|gpu|compute|memory|percent|request|limit")
_ISOLATIONS = ("shared", "soft", "hard", "partitioned")
_QOS = ("low", "medium", "high", "critical")
_MOST_GPUS = 128
"""More GPUs than any node has, so that a request above it is a typing error."""
_HIGHEST_INDEX = 9999
"""Four digits: ten times the cards that are told apart on a node (`derived_gpus.MOST`)."""
_PERCENT = 100_000
"""A hundred percent, exact to a thousandth of one."""
_PARTS = 10
"""The parts of a device in a thousandth of a percent."""

RequestAndLimit = tuple[int | None, int | None]
"""A request and a limit; None for one that is not written."""

UNSET: RequestAndLimit = (None, None)


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What the annotations of a pod request, of each of `count` devices."""

    tflops: RequestAndLimit = UNSET
    vram: RequestAndLimit = UNSET
    percent: RequestAndLimit = UNSET
    """Compute as parts of a device's (a whole device is `WHOLE_GPU` parts)."""
    count: int = 1
    whole: bool = False
    """Must it be the only pod on its devices?"""
    dedicated: bool = False
    """Does it request all compute and memory of its devices?"""
    model: str = ""
    vendor: str = ""
    pool: str = ""
    indices: tuple[int, ...] = ()


def requests_gpus(metadata: Metadata) -> bool:
    """Does a pod request GPUs by annotation?"""
    written = metadata.annotations or {}
    return bool(written) and any(PREFIX + key in written for key in _REQUESTING)


def requests_compute(metadata: Metadata) -> bool:
    """Does a pod request TFLOPs by annotation?"""
    written = metadata.annotations or {}
    return any(PREFIX + key in written for key in _COMPUTE)


def read_request(
    metadata: Metadata, manifest: Manifest, field: str = "metadata"
) -> GpuRequest | None:
    """What the annotations of a pod request; None if they request no GPUs."""
    if not requests_gpus(metadata):
        return None
    written = _Annotations(manifest, f"{field}.annotations", metadata.annotations or {})
    written.choice("qos", _QOS)
    dedicated = written.choice("dedicated-gpu", ("true", "false")) == "true"
    count, indices = _count(written), _indices(written)
    if indices and len(indices) < count:
        written.refuse("gpu-indices", f"names {len(indices)} GPUs, the pod asks for {count}")
    return GpuRequest(
        tflops=_pair(written, "tflops"),
        vram=_pair(written, "vram"),
        percent=_percent(written),
        count=count,
        whole=written.choice("isolation", _ISOLATIONS) == "shared" or dedicated,
        dedicated=dedicated,
        model=written.text("gpu-model"),
        vendor=written.text("vendor"),
        pool=written.text("gpupool"),
        indices=indices,
    )


def devices(metadata: Metadata, manifest: Manifest, field: str = "metadata") -> tuple[str, ...]:
    """The names of the devices that are assigned to a pod."""
    written = _Annotations(manifest, f"{field}.annotations", metadata.annotations or {})
    return tuple(dict.fromkeys(written.text_list("gpu-ids")))


def unknown_keys(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Unknown keys that look like a request, each with the known key that is closest, if any."""
    for key in metadata.annotations or {}:
        group, _, word = key.partition("/")
        if group == TENSOR_FUSION and word not in _KNOWN and _LIKE_A_REQUEST.search(word):
            close = difflib.get_close_matches(word, sorted(_KNOWN), 1)
            yield key, PREFIX + close[0] if close else ""


@dataclass(frozen=True, slots=True)
class _Annotations:
    """The annotations of an object and their field, with readers for their values."""

    manifest: Manifest
    field: str
    values: Mapping[str, Any]

    def refuse(self, key: str, problem: str) -> None:
        self.manifest.refuse(self.place(key), problem)

    def place(self, key: str) -> str:
        return f"{self.field}[{PREFIX}{key}]"

    def text(self, key: str) -> str:
        value = self.values.get(PREFIX + key)
        if isinstance(value, dict | list):
            self.refuse(key, "must be text")
            return ""
        return to_text(value).strip()

    def text_list(self, key: str) -> list[str]:
        return [each.strip() for each in self.text(key).split(",") if each.strip()]

    def amount(self, key: str, resource: str) -> int | None:
        text = self.text(key)
        return amounts.read_one(text, resource, self.manifest, self.place(key)) if text else None

    def choice(self, key: str, choices: Sequence[str]) -> str:
        text = self.text(key)
        if text and text not in choices:
            self.refuse(key, f"{text!r} is none of {', '.join(choices)}")
            return ""
        return text

    def number(self, key: str, text: str, low: int, high: int) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(high))
        if not is_number or not low <= int(text) <= high:
            self.refuse(key, f"{text!r} is no whole number from {low} to {high}")
            return low
        return int(text)


def _count(written: _Annotations) -> int:
    count = written.text("gpu-count")
    return written.number("gpu-count", count, 1, _MOST_GPUS) if count else 1


def _indices(written: _Annotations) -> tuple[int, ...]:
    key = "gpu-indices"
    found = [written.number(key, each, 0, _HIGHEST_INDEX) for each in written.text_list(key)]
    if len(set(found)) < len(found):
        written.refuse(key, "names a GPU twice")
    return tuple(sorted(found))


def _pair(written: _Annotations, what: str, resource: str = "") -> RequestAndLimit:
    """A request and a limit, in this order."""
    keys = (f"{what}-request", f"{what}-limit")
    request, limit = (written.amount(key, resource or what) for key in keys)
    if request is not None and limit is not None and request > limit:
        numbers = f"request {written.text(keys[0])}, limit {written.text(keys[1])}"
        written.refuse(keys[0], f"is above its limit: {numbers}")
    return request, limit


def _percent(written: _Annotations) -> RequestAndLimit:
    """Compute in percent of a device's, as parts of it; refused together with TFLOPs."""
    what = "compute-percent"
    pair = _pair(written, what, "tflops")
    for which, amount in zip(("request", "limit"), pair, strict=True):
        if amount is not None and amount > _PERCENT:
            key = f"{what}-{which}"
            written.refuse(key, f"{written.text(key)} is not between 0 and 100")
    for key in _COMPUTE if pair != UNSET else ():
        if written.text(key):
            written.refuse(key, "compute is asked for in TFLOPs or in percent, not both")
    request, limit = (None if amount is None else amount * _PARTS for amount in pair)
    return request, limit
