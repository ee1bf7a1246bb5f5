"""The custom kinds of TensorFusion: GPUResourceQuota and GPU."""

from aliquot.dialects.core.definition import Definition
from aliquot.dialects.core.manifest import TENSOR_FUSION
from aliquot.dialects.core.schema import (
    Schema,
    anything,
    conditions,
    listed,
    mapped,
    moment,
    open_ended,
    quantity,
    record,
    text,
    whole,
)


def _figures(description: str) -> Schema:
    figures = {
        "tflops": quantity("Compute, in TFLOPs."),
        "compute": quantity("Compute, in percent of a GPU. Bounds nothing."),
        "vram": quantity("Memory of GPUs."),
    }
    return record(figures, description=description)


_TOTAL = record(
    {
        "requests": _figures("What they may request. A figure that is absent is not bounded."),
        "limits": _figures("What their limits may add up to."),
        "maxWorkers": whole("How many pods there may be.", minimum=0, default=32768),
        "alertThresholdPercent": whole(
            "How much may be used before it is worth a word.", minimum=0, maximum=100, default=95
        ),
    },
    description="What the pods of the namespace may use together.",
)
_SINGLE = record(
    {
        "maxRequests": _figures("What one may request of a GPU. 0 is no bound."),
        "maxLimits": _figures("What its limit may be on a GPU. 0 is no bound."),
        "maxGPUCount": whole("How many GPUs one may have. 0 is no bound.", minimum=0),
        "defaultRequests": _figures("What one requests that does not say."),
        "defaultLimits": _figures("What its limit is if it does not say."),
    },
    description="What each of them may ask for.",
)

_QUOTA = Definition(
    group=TENSOR_FUSION,
    version="v1",
    kind="GPUResourceQuota",
    plural="gpuresourcequotas",
    about="What a namespace may use of GPUs.",
    spec=record({"total": _TOTAL, "single": _SINGLE}, description="The bounds."),
    status=open_ended(
        record(
            {
                "used": record(
                    {
                        "requests": _figures("What they request."),
                        "limits": _figures("What their limits add up to."),
                        "workers": whole("How many pods there are."),
                    },
                    description="What the pods of the namespace use.",
                ),
                "availablePercent": mapped(text(), "What is left of each bound."),
                "conditions": conditions(),
                "lastUpdateTime": moment("When this was last written."),
            },
            description="How the quota stands.",
        )
    ),
    columns=(
        ("TFlops", "string", ".spec.total.requests.tflops"),
        ("TFlops Used", "string", ".status.used.requests.tflops"),
        ("VRAM", "string", ".spec.total.requests.vram"),
        ("VRAM Used", "string", ".status.used.requests.vram"),
        ("Workers Used", "integer", ".status.used.workers"),
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    ),
    wide=(
        ("Exceeded", "string", '.status.conditions[?(@.type=="Exceeded")].status'),
        ("Alert Threshold", "integer", ".spec.total.alertThresholdPercent"),
    ),
    short_names=("grq", "gpuquota"),
)

_GPU = Definition(
    group=TENSOR_FUSION,
    version="v1",
    kind="GPU",
    plural="gpus",
    about="One GPU of a node.",
    spec=anything("Nothing is asked of a GPU."),
    status=open_ended(
        record(
            {
                "phase": text("Whether it can be used."),
                "capacity": _figures("What it has."),
                "available": _figures("What is left of it."),
                "uuid": text("What its maker calls it."),
                "gpuModel": text("Its model."),
                "vendor": text("Its maker."),
                "index": whole("Its number on the node.", minimum=0),
                "numaNode": whole("The NUMA node that it is on."),
                "usedBy": text("Which device plugin has it."),
                "nodeSelector": mapped(text(), "The node it is on."),
                "runningApps": listed(anything(), "Who runs on it."),
                "message": text("What is wrong with it."),
            },
            description="What the GPU is, and what is left of it.",
        )
    ),
    columns=(
        ("Phase", "string", ".status.phase"),
        ("Model", "string", ".status.gpuModel"),
        ("TFlops", "string", ".status.capacity.tflops"),
        ("TFlops Left", "string", ".status.available.tflops"),
        ("VRAM", "string", ".status.capacity.vram"),
        ("VRAM Left", "string", ".status.available.vram"),
    ),
    wide=(("Node", "string", r".status.nodeSelector.kubernetes\.io/hostname"),),
    namespaced=False,
)

DEFINITIONS = (_QUOTA, _GPU)
