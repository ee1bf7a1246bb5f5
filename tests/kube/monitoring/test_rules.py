"""The rules: promtool reads them, alerts fire when they should and not before, hours add up."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aliquot.kube.install.monitoring import all_rules
from aliquot.kube.monitoring import accounting, alerts
from aliquot.kube.monitoring.alerts import Bounds
from aliquot.kube.monitoring.rules import Alert, file
from aliquot.kube.observe import catalogue
from tests.kube.monitoring.promtool import needs_promtool, promtool, written

GPU = 'resource="nvidia.com/gpu"'
DOCS = Path(__file__).parents[3] / "docs" / "tasks" / "monitor.md"
BLANK = re.compile(r"\{\{ *([^{}]*?) *\}\}")


def every_alert() -> dict[str, Alert]:
    groups = [*alerts.groups(Bounds()), *alerts.webhook_groups()]
    return {each.name: each for group in groups for each in group.rules if isinstance(each, Alert)}


class Story:
    """One alert: the series, and at which minute it is silent or fires, with which labels."""

    def __init__(
        self, alert: str, series: dict[str, str], fires: dict[str, dict[str, str] | None]
    ) -> None:
        self.alert, self.series, self.fires = alert, series, fires

    def test(self) -> dict[str, Any]:
        series = [{"series": name, "values": said} for name, said in self.series.items()]
        asked = [
            {"eval_time": at, "alertname": self.alert, "exp_alerts": self._expected(labels)}
            for at, labels in self.fires.items()
        ]
        return {"interval": "1m", "input_series": series, "alert_rule_test": asked}

    def _expected(self, labels: dict[str, str] | None) -> list[dict[str, Any]]:
        if labels is None:
            return []
        value = labels.get("$value", "")
        shown = {name: text for name, text in labels.items() if name != "$value"}
        alert = every_alert()[self.alert]

        def said(text: str) -> str:
            return BLANK.sub(lambda found: _filled(found[1], shown, value), text)

        return [
            {
                "exp_labels": {"severity": alert.severity, **shown},
                "exp_annotations": {
                    "summary": said(alert.summary),
                    "description": said(alert.description),
                },
            }
        ]


def _filled(words: str, labels: dict[str, str], value: str) -> str:
    """What the template of an annotation becomes; values are as the test says."""
    if words.startswith("$labels."):
        return labels[words.removeprefix("$labels.")]
    assert words.startswith("$value"), words
    return value


def of(metric: catalogue.Metric, replica: str, more: str = "") -> str:
    return f'{metric}{{instance="{replica}"{"," if more else ""}{more}}}'


A = f'quota="a/q",{GPU}'
LABELS = {"quota": "a/q", "resource": "nvidia.com/gpu"}
STORIES = [
    Story("AliquotNotLeading", {}, {"1m": None, "2m": {}}),
    Story(
        "AliquotNotLeading",
        {of(catalogue.LEADER, "x"): "1 1 0 0 0 0 0 0", of(catalogue.LEADER, "y"): "0x7"},
        {"3m": None, "4m": {}},
    ),
    Story(
        "AliquotNotLeading",
        {of(catalogue.LEADER, "x"): "1 1 0 0 0 0", of(catalogue.LEADER, "y"): "0 0 1 1 1 1"},
        {"5m": None},
    ),
    Story(
        "AliquotLedgerCheckFailed",
        {
            of(catalogue.INVARIANT_VIOLATIONS, "x"): "0 0 2 2 2",
            of(catalogue.INVARIANT_VIOLATIONS, "y"): "0x4",
        },
        {"2m": None, "3m": {"$value": "2"}},
    ),
    Story(
        "AliquotGuaranteeNotMet",
        {of(catalogue.QUOTA_OWED, "x", A): "0 3x20"},
        {"15m": None, "16m": {**LABELS, "$value": "3"}},
    ),
    Story(  # another replica leads from the ninth minute on, and two minutes pass before it knows
        "AliquotGuaranteeNotMet",
        {
            of(catalogue.QUOTA_OWED, "x", A): "3x8 stale",
            of(catalogue.QUOTA_OWED, "y", A): "_x10 3x10",
        },
        {"14m": None, "15m": {**LABELS, "$value": "3"}},
    ),
    Story(
        "AliquotGuaranteeNotMet",
        {of(catalogue.QUOTA_OWED, "x", A): "3x8 0 0 0 0 0 0 0 3x12"},
        {"16m": None, "29m": None},
    ),
    Story(
        "AliquotBorrowingForLong",
        {
            of(catalogue.QUOTA_BORROWED, "x", A): "9x1500",
            of(catalogue.QUOTA_BORROWED, "x", 'quota="b/q",resource="cpu"'): "99x1500",
            of(catalogue.QUOTA_BORROWED, "x", f'quota="c/q",{GPU}'): "8x1500",
        },
        {"23h59m": None, "1d": {**LABELS, "$value": "9"}},
    ),
    Story(
        "AliquotClaimPassed",
        {of(catalogue.PASSED_CLAIM_SECONDS, "x", 'quota="a/q",tree="t"'): "0+60x80"},
        {"65m": None, "66m": {"quota": "a/q", "tree": "t", "$value": "1h 6m 0s"}},
    ),
    Story(
        "AliquotManyEvictions",
        {
            of(catalogue.EVICTIONS, "x", 'reason="ReclaimedForMin"'): "0+12x40",
            of(catalogue.EVICTIONS, "x", 'reason="FairShare"'): "0+3x40",
        },
        {"5m": None, "25m": {"$value": "15"}},
    ),
    Story(
        "AliquotManyEvictions",
        {of(catalogue.EVICTIONS, "x", 'reason="NodeLost"'): "0+100x40"},
        {"25m": None},
    ),
    Story(
        "AliquotEvictionsPaused",
        {of(catalogue.EVICTIONS_PAUSED, "x"): "1x300"},
        {"3h59m": None, "4h": {}},
    ),
    Story(
        "AliquotWebhookFailing",
        {
            of(catalogue.ADMISSION_REVIEWS, "w", 'kind="Queue",result="failed"'): "0+60x40",
            of(catalogue.ADMISSION_REVIEWS, "w", 'kind="Queue",result="allowed"'): "0+60x40",
        },
        {"5m": None, "20m": {"$value": "1"}},
    ),
    Story(
        "AliquotWebhookFailing",
        {of(catalogue.ADMISSION_REVIEWS, "w", 'kind="Queue",result="refused"'): "0+60x40"},
        {"20m": None},
    ),
    Story("AliquotWebhookMissing", {}, {"9m": None, "10m": {}}),
    Story("AliquotWebhookMissing", {of(catalogue.CERTIFICATE_EXPIRY, "w"): "1x20"}, {"15m": None}),
    Story(
        "AliquotWebhookCertificateEnds",
        {of(catalogue.CERTIFICATE_EXPIRY, "w"): "864000x80"},
        {"59m": None, "1h": {"$value": "9d 23h 0m 0s"}},
    ),
    Story(
        "AliquotWebhookCertificateEnds",
        {of(catalogue.CERTIFICATE_EXPIRY, "w"): "8640000x80"},
        {"1h": None},
    ),
]


@needs_promtool
def test_alerts_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    written(tmp_path / "rules.yaml", all_rules(Bounds()))
    body = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [each.test() for each in STORIES],
    }
    promtool("test", "rules", written(tmp_path / "test.yaml", body))


def test_every_alert_has_a_story_in_which_it_fires() -> None:
    fired = {each.alert for each in STORIES if any(at is not None for at in each.fires.values())}
    assert fired == set(every_alert())


@needs_promtool
def test_promtool_finds_nothing_wrong(tmp_path: Path) -> None:
    said = promtool("check", "rules", written(tmp_path / "rules.yaml", all_rules(Bounds())))
    assert "SUCCESS" in said
    charted = Path(__file__).parents[3] / "charts" / "aliquot" / "rules" / "aliquot.yaml"
    assert "SUCCESS" in promtool("check", "rules", charted)


JANUARY = 'month="197001"'
"""When tests of promtool begin."""


def hours(
    folder: Path, interval: str, series: dict[str, str], wanted: Sequence[tuple[str, str, float]]
) -> None:
    """Have promtool compare expressions at a moment with these values, of all labels but month."""
    written(folder / "rules.yaml", file(accounting.groups()))
    given = [{"series": name, "values": said} for name, said in series.items()]
    asked = [
        {"expr": expression, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
        for at, expression, value in wanted
    ]
    test = {"interval": interval, "input_series": given, "promql_expr_test": asked}
    body = {"rule_files": ["rules.yaml"], "evaluation_interval": interval, "tests": [test]}
    promtool("test", "rules", written(folder / "test.yaml", body))


def part(figure: str, quota: str = "a/q") -> str:
    chosen = f'figure="{figure}",quota="{quota}",{JANUARY}'
    return f"round(1000 * sum({accounting.HOURS}:1m{{{chosen}}}))"


@needs_promtool
def test_a_minute_counts_with_what_was_had_in_it(tmp_path: Path) -> None:
    series = {
        of(catalogue.QUOTA_USED, "x", A): "6 6 3 3 3 3 3 3",
        of(catalogue.QUOTA_USED, "x", 'quota="a/q",resource="cpu"'): "600x8",
        of(catalogue.QUOTA_MIN, "x", A): "30x8",
        of(catalogue.QUOTA_BORROWED, "x", A): "1.2x8",
        of(catalogue.QUOTA_LENT, "x", A): "0.6x8",
        of(catalogue.EVICTED_RESOURCE_SECONDS, "x", A): "0 0 3600 3600 3600 3600 3600 3600",
    }
    wanted = [
        ("1m", part("used"), 100.0),  # six GPUs for a minute, in thousandths of an hour
        ("2m", part("used"), 50.0),
        ("2m", part("guaranteed"), 500.0),
        ("2m", part("borrowed"), 20.0),
        ("2m", part("lent"), 10.0),
        ("6m", part("lost"), 200.0),  # an hour of one GPU: a fifth of it in each of five minutes
        ("7m", part("lost"), 0.0),
        ("7m", f'count({accounting.HOURS}:1m{{resource="cpu"}}) or vector(0)', 0.0),
    ]
    hours(tmp_path, "1m", series, wanted)


@needs_promtool
def test_months_are_the_sum_of_their_hours(tmp_path: Path) -> None:
    """January 1970 has 744 hours; February begins anew, and January stays as it is.

    There is one sample an hour here, exactly when an hour ends and the next begins: both have it.
    """
    labels = f'figure="used",quota="a/q",{GPU}'
    january = f'{accounting.HOURS}:1m{{{labels},month="197001"}}'
    february = f'{accounting.HOURS}:1m{{{labels},month="197002"}}'
    series = {january: "2x743 stale", february: "_x744 5x20"}
    total = f'sum(last_over_time({accounting.TOTAL}{{quota="a/q",month="%s"}}[2d]))'
    wanted = [
        ("0h", total % "197001", 2.0),
        ("99h", total % "197001", 2.0 + 4 * 99),
        ("744h", total % "197001", 2.0 + 4 * 743 + 2.0),
        ("750h", total % "197001", 2.0 + 4 * 743 + 2.0),
        ("750h", total % "197002", 5.0 + 10 * 6),
    ]
    hours(tmp_path, "1h", series, wanted)


def test_all_names_are_of_the_catalogue_or_recorded_before() -> None:
    known = {each.name for each in catalogue.METRICS}
    recorded: set[str] = set()
    for group in all_rules(Bounds())["groups"]:
        for rule in group["rules"]:
            asked = set(re.findall(r"\b(?:aliquot|process)[_:][\w:]+", rule["expr"]))
            if "record" in rule:
                recorded.add(rule["record"])
            assert {re.sub(r"_(bucket|count|sum)$", "", each) for each in asked} <= (
                known | recorded
            ), rule


def test_the_page_lists_every_alert() -> None:
    rows = re.findall(r"^\| `(Aliquot\w+)` \| (\w+) \| (\w+) \|", DOCS.read_text(), re.MULTILINE)
    found = {name: (severity, wait) for name, severity, wait in rows}
    assert found == {each.name: (each.severity, each.wait) for each in every_alert().values()}


@pytest.mark.parametrize("alert", every_alert().values(), ids=lambda each: str(each.name))
def test_annotations_are_for_people(alert: Alert) -> None:
    assert alert.summary[0].isupper()
    assert not alert.summary.endswith(".")
    assert alert.description.endswith((".", "?"))
