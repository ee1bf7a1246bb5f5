"""What holds for all tests: repeatable examples, and a word on what the suite could not reach.

Property tests draw the same examples on every run, so that a failure is the change's own;
`ALIQUOT_RANDOM=1` looks for new ones instead. How many they draw says `tests.campaign`. An example
has no deadline: how long it takes is a matter of what else the machine does.
"""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.cluster.api import binaries
from tests.distribution import REAL, SharedFirst
from tests.web.browsers import CHROMIUM, NO_CHROMIUM

settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("random"), derandomize=True)
settings.load_profile("random" if os.environ.get("ALIQUOT_RANDOM") else "repeatable")

_SUITES = {
    "API suite": "tests/cluster/api/",
    "Client and webhook": "tests/cluster/kube/",
    "Control plane": "tests/cluster/plane/",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-server",
        action="store_true",
        help="only what runs against kube-apiserver, etcd and kubectl; an error without them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Rather fail than say that all is well with a server that was not there."""
    if not config.getoption("--real-server"):
        return
    if binaries.real_server() is None:
        raise pytest.UsageError(
            f"there is no real server to test against: {binaries.NO_REAL_SERVER}"
        )
    if binaries.kubectl() is None:
        raise pytest.UsageError(f"there is no kubectl to test with: {binaries.NO_KUBECTL}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedFirst:
    """Tests that share a server run in one worker."""
    return SharedFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--real-server`, leave out the tests that never meet one."""
    if not config.getoption("--real-server"):
        return
    chosen = [each for each in items if _meets_a_real_server(each)]
    config.hook.pytest_deselected(items=[each for each in items if each not in chosen])
    items[:] = chosen


def _meets_a_real_server(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    if "[embedded" in item.nodeid or not {"server", "start", "cluster"}.isdisjoint(fixtures):
        return "[real" in item.nodeid
    return not {"real", "real_cluster", "installed"}.isdisjoint(fixtures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly which servers the tests on servers ran against, and which were not there."""
    ran = {name: _by_server(terminalreporter, where) for name, where in _SUITES.items()}
    for name, counts in ran.items():
        if not counts:
            continue
        said = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        terminalreporter.write_line(f"{name}: {said}")
        if binaries.real_server() is None:
            terminalreporter.write_line(
                f"{name}: NOT run against a real kube-apiserver: {binaries.NO_REAL_SERVER}"
            )
    if ran["API suite"] and binaries.kubectl() is None:
        terminalreporter.write_line(f"API suite: NOT run with kubectl: {binaries.NO_KUBECTL}")
    if CHROMIUM is None:
        terminalreporter.write_line(f"The page: NOT looked at in a browser: {NO_CHROMIUM}")


def _by_server(terminalreporter: pytest.TerminalReporter, where: str) -> Counter[str]:
    """How the tests below a folder went, against which server."""
    counts: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "skipped", "xfailed"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.nodeid.startswith(where) and (report.when == "call" or outcome != "passed"):
                server = "real" if REAL.search(report.nodeid) else "embedded"
                counts[f"{server} {outcome}"] += 1
    return counts
