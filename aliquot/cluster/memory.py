"""The garbage collector, told what this program is like.

State is large, long-lived and free of cycles: looking through all of it again and again costs a
third of the time and finds nothing.
"""

import gc


def calm_collector() -> None:
    """Leave what is there alone from now on, and look rarely at the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 1000)
