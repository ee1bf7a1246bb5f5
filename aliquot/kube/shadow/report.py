"""The report of a shadow, as `-o json` prints it; the table of the command is drawn from it."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from aliquot.dialects.core.times import moment, seconds
from aliquot.engine import SECOND, Evict
from aliquot.json import Body
from aliquot.kube.observe import catalogue
from aliquot.kube.shadow.comparison import Comparison, Difference, Opinion, Verdict, Word
from aliquot.kube.shadow.shadow import Shadow


def report(shadow: Shadow) -> Body:
    """Everything that was compared so far, and what the shadow would do with what waits now."""
    comparison, tally = shadow.comparison, shadow.comparison.tally
    return {
        "policy": shadow.policy,
        "since": moment(shadow.since),
        "at": moment(shadow.clock()),
        "pods": {each.value: tally.verdicts[each] for each in Verdict},
        "wouldWaitFor": dict(sorted(tally.waits.items())),
        "earlier": {
            "pods": tally.earlier,
            "seconds": _rounded(tally.earlier_total),
            "most": _rounded(tally.earlier_most),
        },
        "evictions": {
            "shadow": sum(tally.evictions.values()),
            "byReason": dict(sorted(tally.evictions.items())),
            "cluster": tally.evicted,
        },
        "pending": pending(comparison),
        "differences": [_difference(each) for each in comparison.differences],
        "wouldEvict": [_eviction(at, each) for at, each in comparison.evictions],
    }


def pending(comparison: Comparison) -> Body:
    """What the shadow would do with the pods that wait now."""
    opinions = list(comparison.opinions.values())
    words = Counter(each.word for each in opinions)
    waits = Counter(each.reason for each in opinions if each.word is Word.WAIT)
    return {
        **{each.value: words[each] for each in Word},
        "wouldWaitFor": dict(sorted(waits.items())),
    }


def _difference(found: Difference) -> Body:
    return {
        "at": moment(found.at),
        "pod": found.opinion.pod.path,
        "verdict": found.verdict.value,
        "node": found.node,
        "shadow": _opinion(found.opinion),
        "earlierSeconds": _rounded(found.earlier),
    }


def _opinion(opinion: Opinion) -> Body:
    return {
        "would": opinion.word.value,
        "at": moment(opinion.at),
        "node": opinion.node,
        "reason": opinion.reason or None,
        "message": opinion.message or None,
        "evicts": [each.pod.path for each in opinion.victims],
    }


def _eviction(at: int, found: Evict) -> Body:
    return {
        "at": moment(at),
        "pod": found.pod.path,
        "for": None if found.claimant is None else found.claimant.path,
        "reason": found.reason.value,
        "message": found.message,
    }


def _rounded(nanos: int) -> int | float:
    """Seconds, to a tenth: what schedulers differ by is not a matter of milliseconds."""
    return seconds(round(nanos, -8)) if nanos % SECOND else nanos // SECOND


class ShadowCollector(Collector):
    """The figures of the report, for Prometheus; read in another thread."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def collect(self) -> Iterator[Metric]:
        """All series, as of now."""
        tally = self._comparison.tally
        compared = CounterMetricFamily(*catalogue.SHADOW_PODS.family)
        for verdict in Verdict:
            compared.add_metric([verdict.value], tally.verdicts[verdict])
        yield compared
        evictions = CounterMetricFamily(*catalogue.SHADOW_EVICTIONS.family)
        for reason, number in dict(tally.evictions).items():
            evictions.add_metric([reason], number)
        yield evictions
        earlier = CounterMetricFamily(*catalogue.SHADOW_EARLIER.family)
        earlier.add_metric([], tally.earlier_total / SECOND)
        yield earlier
        waiting = GaugeMetricFamily(*catalogue.SHADOW_PENDING.family)
        now = Counter(each.word for each in list(self._comparison.opinions.values()))
        for word in Word:
            waiting.add_metric([word.value], now[word])
        yield waiting
