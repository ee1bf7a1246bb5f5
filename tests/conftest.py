"""Property tests draw the same examples on every run, so that a failure is the change's own.

`ALIQUOT_RANDOM=1` looks for new ones instead.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
if not os.environ.get("ALIQUOT_RANDOM"):
    settings.load_profile("repeatable")
