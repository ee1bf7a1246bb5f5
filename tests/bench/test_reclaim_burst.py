"""What a burst of reclaims consists of, and what its figures say of what was seen."""

from collections import Counter

from aliquot.bench.cluster import burst_load, loop_probe
from aliquot.bench.cluster.reclaim_burst import Burst


def test_mins_add_up_to_all_cpus_and_the_owners_ask_for_theirs() -> None:
    mins = [int(each["spec"]["min"]["cpu"]) for each in burst_load.quotas(40)]
    assert mins == [240] * 8
    assert sum(mins) == 40 * burst_load.CPUS
    borrowing = Counter(each["metadata"]["namespace"] for each in burst_load.borrowing_pods(40))
    assert borrowing == {"a": 600, "b": 600, "c": 300, "d": 300}
    owed = Counter(each["metadata"]["namespace"] for each in burst_load.owed_pods(40))
    assert owed == dict.fromkeys("efgh", 240)
    assert (burst_load.running(40), burst_load.asked(40)) == (1800, 960)
    assert burst_load.to_evict(40) == 840


def test_borrowers_are_replaced_under_new_names_and_owners_are_not() -> None:
    first = burst_load.successor("a", "a-7")
    assert first is not None
    assert first["metadata"]["name"] == "a-7.1"
    second = burst_load.successor("a", "a-7.1")
    assert second is not None
    assert second["metadata"]["name"] == "a-7.2"
    assert burst_load.successor("e", "e-7") is None
    assert burst_load.successor("apart", "apart-0") is None


def test_figures_of_a_burst_that_did_not_come_to_its_end() -> None:
    burst = Burst(
        nodes=2,
        began=100.0,
        ended=160.0,
        created=1.0,
        binds=[101.0, 104.0],
        others_bound=0,
        evictions=9,
        put_off=3,
        delays=[
            loop_probe.Delay(loop_probe.LOOP, 105.0, 0.5, 0.4),
            loop_probe.Delay(loop_probe.LOOP, 106.0, 0.2, 0.2),
            loop_probe.Delay(loop_probe.CYCLE, 106.0, 0.3, 0.1),
        ],
        slowest_answer=0.05,
        waits_apart=[0.1, 2.0],
        cpu=1.5,
    )
    found = {each.what: each for each in burst.figures("on")}
    assert found["until the first bind"].value == 1.0
    assert found["until all has settled"].value == 60.0
    assert found["longest time without a bind"].value == 56.0, "the last bind is not the end"
    assert found["pods of the burst that wait still"].value == 46
    assert found["pods of the burst that wait still"].met is False
    assert found["longest wait for the main loop"].value == 500.0
    assert found["CPU of the main loop meanwhile"].value == 400.0
    assert found["longest cycle"].value == 300.0
    assert found["longest wait of a pod apart"].value == 2.0
