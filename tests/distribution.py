"""Which tests run in the same worker: those that share what is slow to start.

A server, or what a module sets up once, is started in every worker that runs a test of it. With all
of its tests in one worker it is started once; and while that worker waits for its server, others
compute. All other tests go one by one to the worker that is free. Shared tests are given out first,
so that none of them is left to a single worker in the end.
"""

import re

from xdist.scheduler import LoadScopeScheduling

REAL = re.compile(r"\[real|_real_server\b")
"""The names of tests that run against the real server."""
_MODULES = (
    "tests/layers/test_contracts.py",
    "tests/server/test_up.py",
    "tests/tools/test_decision_streams.py",
)
"""Those that set something up once for all of their tests."""


def shared_by(test: str) -> str | None:
    """What a test shares with others, by its name; None if it is as well off in any worker."""
    module = test.partition("::")[0]
    if module in _MODULES:
        return module
    if module.startswith("tests/web/"):
        return "browser"
    if module.startswith("tests/cluster/install/"):
        return "installed"
    if module.startswith("tests/cluster/") and REAL.search(test):
        return "real cluster" if module.startswith("tests/cluster/plane/") else "real server"
    return "embedded webhook" if module == "tests/cluster/kube/test_webhook.py" else None


class SharedFirst(LoadScopeScheduling):  # type: ignore[misc]
    """Gives tests to workers: the largest group of them that share something first."""

    def _split_scope(self, nodeid: str) -> str:
        return shared_by(nodeid) or nodeid
