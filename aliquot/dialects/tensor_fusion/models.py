"""The TFLOPs of GPUs by model, for nodes whose only information on their GPUs is a model label.

Dense FP16 on tensor cores with FP32 accumulation, as the vendors publish it; for a model without
tensor cores, plain FP16.
"""

import re

_TFLOPS = {
    "A2": "18",
    "A10": "125",
    "A10G": "70",
    "A16": "17.9",
    "A30": "165",
    "A40": "149.7",
    "A100": "312",
    "A800": "312",
    "B200": "2250",
    "GB200": "2500",
    "GH200": "989",
    "H20": "148",
    "H100": "989",
    "H100 NVL": "835",
    "H100 PCIE": "756",
    "H200": "989",
    "H200 NVL": "835",
    "H800": "989",
    "H800 PCIE": "756",
    "L4": "121",
    "L20": "119.5",
    "L40": "181",
    "L40S": "362",
    "P100 PCIE": "18.7",
    "P100 SXM2": "21.2",
    "RTX 3090": "71",
    "RTX 4090": "165.2",
    "RTX 5090": "209.5",
    "RTX 6000 ADA": "364.2",
    "RTX A4000": "76.7",
    "RTX A5000": "111.1",
    "RTX A6000": "154.8",
    "T4": "65",
    "V100": "125",
    "V100 PCIE": "112",
    "V100S": "130",
}
_WORDS = re.compile(r"[A-Z0-9]+")
_GLUED = re.compile(r"\bRTX(?=[0-9A])")


def tflops(product: str) -> str:
    """The TFLOPs of a GPU by its product name, such as `NVIDIA-A100-SXM4-40GB`; empty if unknown.

    A model matches if its words stand next to each other in the name; of several, the longest.
    """
    words = f" {' '.join(_WORDS.findall(_GLUED.sub('RTX ', product.upper())))} "
    known = [model for model in _TFLOPS if f" {model} " in words]
    return _TFLOPS[max(known, key=len)] if known else ""
