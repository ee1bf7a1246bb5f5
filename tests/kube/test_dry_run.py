"""What a dry run logs in place of writes."""

from structlog.testing import capture_logs

from aliquot.engine.model.decisions import Bind, Evict, Nominate, Wait
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.kube.execution.dry_run import log_decisions
from tests.build.values import pod


def test_a_line_for_each_pod_and_the_victims_first() -> None:
    first, second, victim = pod("p", 1, "a"), pod("q", 1, "a"), pod("x", 1, "b", node="n2")
    evict = Evict(victim, first, Reason.RECLAIMED_FOR_MIN, "b borrows")
    with capture_logs() as logs:
        log_decisions(
            [
                Bind(pod("r", 1, "a"), "n1", ("gpu-0",)),
                Wait(pod("s", 1, "a"), Refusal(Reason.NO_NODE_FITS, "no node")),
                Nominate((first, second), ("n2", "n3"), (evict,)),
            ]
        )
    assert {each.pop("event") for each in logs} == {"would decide"}
    assert {each.pop("log_level") for each in logs} == {"info"}
    assert logs == [
        {"decision": "bind", "pod": "a/r", "node": "n1"},
        {"decision": "hold", "pod": "a/s", "reason": "NoNodeFits", "message": "no node"},
        {"decision": "evict", "pod": "b/x", "reason": "ReclaimedForMin", "message": "b borrows"},
        {"decision": "nominate", "pod": "a/p", "node": "n2"},
        {"decision": "nominate", "pod": "a/q", "node": "n3"},
    ]
