"""Traces: what was submitted to a cluster, as tables, read into objects that a simulation takes.

`openb:NODES.csv,PODS.csv` are the tables of Alibaba's cluster-trace-gpu-v2023. `csv:PODS.csv` is a
plain table, with a heading: `name` and `arrival`, and where they are known `namespace`, `duration`,
`priority`, `gpu_milli` (a thousandth of a card each); every other column is a resource. Times are
seconds, or durations such as 10m; an empty cell asks for nothing.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.validation import files

_GPU = "nvidia.com/gpu"
_PRODUCT, _MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
_VRAM = "tensor-fusion.ai/vram-request"
_CARD = 1_000
"""MiB of a card, so that a thousandth of a card is a MiB: the trace says no size."""
_PLAIN = ("name", "namespace", "arrival", "duration", "priority", "gpu_milli")
_OPENB_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_OPENB_PODS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
_MOST_PODS = 110
"""Pods of a node, the default of kubelets."""
FORMATS = ("openb", "csv")

Row = Mapping[str, str]
Make = Callable[[Row, str], Body]
"""Makes an object of a row and its place."""


def read(trace: str) -> list[Document]:
    """The objects of a trace."""
    form, _, rest = trace.partition(":")
    paths = [each for each in rest.split(",") if each]
    wanted = {"openb": 2, "csv": 1}.get(form)
    if wanted is None or len(paths) != wanted:
        problem = f"{trace!r:.60} is neither openb:NODES.csv,PODS.csv nor csv:PODS.csv"
        raise InputError("--trace", "", problem)
    if form == "csv":
        return list(_documents(paths[0], ("name", "arrival"), _plain_pod))
    return [
        *_documents(paths[0], _OPENB_NODES, _openb_node),
        *_documents(paths[1], _OPENB_PODS, _openb_pod),
    ]


def _documents(path: str, columns: tuple[str, ...], make: Make) -> Iterator[Document]:
    for content, name in files.contents(path):
        rows = csv.DictReader(io.StringIO(files.text(content, name)))
        missing = [each for each in columns if each not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{name}, line 1", "", f"lacks the column {missing[0]}")
        for row in rows:
            place = f"{name}, line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(place, "", f"must have {len(rows.fieldnames or ())} cells")
            yield Document(place, make(row, place), name)


class _Cells:
    """The cells of a row, read as what they must be."""

    def __init__(self, row: Row, place: str) -> None:
        self.row, self._place = row, place

    def text(self, column: str) -> str:
        """The text of a cell; empty if there is no such column."""
        return (self.row.get(column) or "").strip()

    def whole(self, column: str) -> int:
        """A whole number; 0 for an empty cell."""
        text = self.text(column)
        if not text:
            return 0
        if not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise InputError(self._place, column, f"{text!r:.40} is not a whole number")
        return int(text)


def _openb_node(row: Row, place: str) -> Body:
    cells = _Cells(row, place)
    has: Body = {
        "cpu": f"{cells.whole('cpu_milli')}m",
        "memory": f"{cells.whole('memory_mib')}Mi",
        "pods": _MOST_PODS,
    }
    labels = {}
    if cards := cells.whole("gpu"):
        has[_GPU] = cards
        labels = {_PRODUCT: cells.text("model") or "unknown", _MEMORY: str(_CARD)}
    metadata = {"name": cells.text("sn"), "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": has},
    }


def _openb_pod(row: Row, place: str) -> Body:
    cells = _Cells(row, place)
    created, deleted = cells.whole("creation_time"), cells.whole("deletion_time")
    started = cells.whole("scheduled_time") if cells.text("scheduled_time") else created
    asks = {"cpu": f"{cells.whole('cpu_milli')}m", "memory": f"{cells.whole('memory_mib')}Mi"}
    cards, part = cells.whole("num_gpu"), cells.whole("gpu_milli")
    times = {ARRIVAL: f"{created}s", DURATION: f"{max(deleted - started, 0)}s"}
    body = _pod(cells.text("name"), "openb", asks, times, cards, part)
    models = [each for each in cells.text("gpu_spec").split("|") if each]
    if models and cards:
        terms = [{"matchExpressions": [{"key": _PRODUCT, "operator": "In", "values": models}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        body["spec"]["affinity"] = {"nodeAffinity": required}
    return body


def _plain_pod(row: Row, place: str) -> Body:
    cells = _Cells(row, place)
    asks = {key: cells.text(key) for key in row if key not in _PLAIN and cells.text(key)}
    cards = int(asks.pop(_GPU)) if asks.get(_GPU, "").isdecimal() else 0
    times = {ARRIVAL: cells.text("arrival")}
    if cells.text("duration"):
        times[DURATION] = cells.text("duration")
    where = cells.text("namespace") or "default"
    body = _pod(cells.text("name"), where, asks, times, cards, cells.whole("gpu_milli"))
    if cells.text("priority"):
        body["spec"]["priority"] = cells.whole("priority")
    return body


def _pod(name: str, namespace: str, asks: Body, times: Body, cards: int, part: int) -> Body:
    """A pod with whole cards, or with a part of each of its cards."""
    annotations = dict(times)
    if 0 < part < _CARD:
        annotations |= {_VRAM: f"{part}Mi", "tensor-fusion.ai/gpu-count": str(cards or 1)}
    elif cards:
        asks = {**asks, _GPU: cards}
    limits = {key: amount for key, amount in asks.items() if "/" in key}
    resources = {"requests": asks, **({"limits": limits} if limits else {})}
    container = {"name": "main", "image": "trace", "resources": resources}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
