"""What is written to a pod: only what differs from what it shows, or was written since."""

import asyncio
from typing import Any, cast

from aliquot.kube.api.client import Client
from aliquot.kube.control.pod_status import PodStatus
from aliquot.kube.control.shown_status import ShownStatus
from aliquot.kube.control.writer import Writer
from tests.build.values import pod
from tests.kube.workshop import Answers, Body

P = pod("p", 1, "a")
LABEL = "nos.nebuly.com/capacity"


class Statuses:
    """The status of one pod, with a cluster that shows what the test wants."""

    def __init__(self, **shown: Any) -> None:
        self.answers, self.writer = Answers(), Writer(lambda: True)
        self.shown = {P.uid: ShownStatus(**shown)}
        client = cast("Client", self.answers)
        self.pod_status = PodStatus(client, self.writer, lambda: self.shown)
        self.pod_status.begin()

    def shows(self, **shown: Any) -> None:
        self.shown = {P.uid: ShownStatus(**shown)}

    def written(self) -> list[Body]:
        """What has been written since this was last asked."""

        async def write() -> None:
            task = asyncio.create_task(self.writer.run())
            while not self.writer.idle:
                await asyncio.sleep(0)
            task.cancel()

        asyncio.run(write())
        found, self.answers.written = self.answers.written, []
        return [body for _, _, body in found]

    def label(self, **labels: str) -> None:
        self.pod_status.update_labels([P], {P.uid: labels})


def test_a_condition_is_written_once_and_again_only_if_the_cluster_shows_another() -> None:
    made = Statuses()
    assert made.pod_status.refuse(P, ("Why", "one"))
    assert not made.pod_status.refuse(P, ("Why", "one"))
    assert made.pod_status.refusal(P.uid) == ("Why", "one")
    assert made.pod_status.refused() == [P.uid]
    ((condition,),) = (each["status"]["conditions"] for each in made.written())
    assert "lastTransitionTime" in condition
    assert made.pod_status.refuse(P, ("Why", "two"))
    ((condition,),) = (each["status"]["conditions"] for each in made.written())
    assert "lastTransitionTime" not in condition, "it was False before"
    made.shows(refusal=("Why", "one"))
    assert made.pod_status.refusal(P.uid) == ("Why", "one")
    assert made.pod_status.refuse(P, ("Why", "two"))


def test_nothing_is_written_to_a_pod_that_is_gone() -> None:
    made = Statuses()
    made.shown = {}
    assert not made.pod_status.refuse(P, ("Why", "one"))
    assert made.pod_status.refusal(P.uid) is None
    made.pod_status.clear_nomination(P)
    made.label(**{LABEL: "in-quota"})
    assert made.written() == []


def test_a_new_engine_believes_what_the_cluster_shows_alone() -> None:
    """A write may have been dropped with the leadership."""
    made = Statuses()
    assert made.pod_status.refuse(P, ("Why", "one"))
    made.label(**{LABEL: "in-quota"})
    made.writer.drop_all()
    made.pod_status.begin()
    assert made.pod_status.refuse(P, ("Why", "one"))
    made.label(**{LABEL: "in-quota"})
    assert len(made.written()) == 2


def test_labels_are_set_and_removed_and_not_written_twice_at_once() -> None:
    made = Statuses(capacity={"old": "x", LABEL: "in-quota"})
    made.label(**{LABEL: "over-quota"})
    made.label(**{LABEL: "over-quota"})
    assert [each["metadata"]["labels"] for each in made.written()] == [
        {"old": None, LABEL: "over-quota"}
    ]
    made.label(**{LABEL: "in-quota"})
    assert [each["metadata"]["labels"] for each in made.written()] == [{"old": None}]
    made.shows(capacity={LABEL: "in-quota"})
    made.label(**{LABEL: "in-quota"})
    assert made.written() == []


def test_a_nomination_is_cleared_where_the_cluster_shows_one() -> None:
    made = Statuses(nominated="n1")
    made.pod_status.clear_nomination(P)
    assert [each["status"] for each in made.written()] == [{"nominatedNodeName": None}]
    made.shows()
    made.pod_status.clear_nomination(P)
    assert made.written() == []
