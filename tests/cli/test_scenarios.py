"""`aliquot test`: what can be expected, how differences read, and what a broken file does."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from aliquot.json import Body
from tests.build.manifests import node, pod, quota, resource
from tests.cli.conftest import Ran, Run

OBJECTS = [
    node(gpu=2),
    quota("a", {"gpu": 1}),
    quota("b", {"gpu": 1}),
    pod("a/first", {"gpu": 1}, priority=9),
    pod("a/second", {"gpu": 1}),
]
CLAIM = pod("b/claims", {"gpu": 1})


def scenario(*steps: Body, name: str = "s") -> Body:
    body = resource("aliquot.dev/v1alpha1", "Scenario", name)
    return {**body, "policy": "capacity", "objects": OBJECTS, "steps": list(steps)}


def ran(aliquot: Run, expect: Body, *steps: Body) -> Ran:
    return aliquot("test", [scenario(*steps, {"at": 60, "apply": [CLAIM], "expect": expect})])


HOLDS: list[Body] = [
    {"evictions": 1},
    {"order": ["a/first", "a/second", "b/claims"]},
    {"order": ["a/second", "b/claims"]},
    {"absent": ["a/third", "a/second"]},
    {"quotas": {"b/quota": {"used": {"cpu": 0, "memory": "0"}, "borrowed": {"memory": 0}}}},
    {"quotas": {"b/quota": {"max": {"memory": None}, "parent": None, "scaledMin": None}}},
]
DIFFERS: list[tuple[Body, str]] = [
    ({"evictions": 0}, "there should be 0 evictions, there are 1 (a/second)"),
    ({"evictions": 2}, "there should be 2 evictions, there are 1 (a/second)"),
    ({"order": ["b/claims", "a/first"]}, "a/first should have started after b/claims"),
    ({"order": ["a/first", "a/third"]}, "a/third should have started, is not there"),
    ({"absent": ["a/first"]}, "a/first should be absent, is Running"),
    ({"absent": ["b/claims"]}, "b/claims should be absent, is Running"),
    ({"labels": {"a/first": None}}, "should be neither in-quota nor over-quota, is in-quota"),
    ({"labels": {"a/third": "in-quota"}}, "in-quota, is neither in-quota nor over-quota"),
    ({"quotas": {"b/quota": {"parent": "x"}}}, "parent should be x, is none"),
    ({"quotas": {"b/quota": {"used": {"memory": 1}}}}, "used memory should be 1, is 0"),
    ({"quotas": {"b/quota": {"max": {"memory": 0}}}}, "max memory should be 0, is unlimited"),
    ({"quotas": {"b/quota": {"guaranteed": {"cpu": 1}}}}, "should be 1 cpu, is none"),
]


@pytest.mark.parametrize("expect", HOLDS, ids=str)
def test_what_holds_can_be_expected(aliquot: Run, expect: Body) -> None:
    done = ran(aliquot, expect, {"expect": {"running": ["a/first", "a/second"], "evictions": 0}})
    assert (done.code, done.err) == (0, ""), done.out


@pytest.mark.parametrize(("expect", "words"), DIFFERS, ids=str)
def test_a_difference_is_said_in_words(aliquot: Run, expect: Body, words: str) -> None:
    done = ran(aliquot, expect)
    assert done.code == 1
    assert words in done.out
    assert "None" not in done.out


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"runing": ["a/first"]}, "unknown field runing"),
        ({"quotas": {"a/quota": {"usd": {"cpu": 1}}}}, "unknown field usd"),
        ({"quotas": {"a/quota": {"used": 4}}}, "expected an object"),
        ({"queues": {"q": {"deserve": {}}}}, "unknown field deserve"),
        ({"queues": {"q": {"namespaces": {"a": {"shares": 1}}}}}, "unknown field shares"),
        ({"gangs": {"g": {"minmember": 1}}}, "unknown field minmember"),
        ({"gpuQuotas": {"g": {"used": {"request": {}}}}}, "unknown field request"),
        ({"evictions": "many"}, "expected a whole number"),
        ({"order": "a/first"}, "expected a list"),
        ({"pending": {"a/first": {"why": "x"}}}, "unknown field why"),
    ],
    ids=str,
)
def test_an_unknown_expectation_is_refused(aliquot: Run, expect: Body, words: str) -> None:
    done = ran(aliquot, expect)
    assert (done.code, done.out) == (2, "")
    assert "Scenario s: steps[" in done.err or "Scenario: steps[" in done.err
    assert words in done.err
    assert len(done.err.splitlines()) == 1


BROKEN: dict[str, str | bytes] = {
    "no-yaml.yaml": "a: [",
    "no-text.yaml": b"\xff\xfe\xff",
    "no-object.yaml": "- 1\n",
    "no-scenario.yaml": yaml.safe_dump({**scenario(), "steps": [{"expect": {"runs": []}}]}),
    "no-policy.yaml": yaml.safe_dump({**scenario(), "policy": "nice"}),
    "no-file.yaml": yaml.safe_dump({**scenario(), "files": ["missing.yaml"]}),
    "no-time.yaml": yaml.safe_dump(scenario({"at": "soon"})),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "scenarios"
    made.mkdir()
    good = scenario({"expect": {"running": ["a/first"]}}, name="good")
    bad = scenario({"expect": {"pending": ["a/first"]}}, name="bad")
    (made / "a-good.yaml").write_text(yaml.safe_dump(good))
    (made / "z-bad.yaml").write_text(yaml.safe_dump(bad))
    return made


def write(folder: Path, name: str) -> None:
    content = BROKEN[name]
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)


def verdicts(done: Ran) -> dict[str, Any]:
    return {each["name"]: each["passed"] for each in json.loads(done.out)["scenarios"]}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_does_not_hide_the_results_of_others(
    aliquot: Run, folder: Path, name: str
) -> None:
    write(folder, name)
    done = aliquot("test", str(folder), "-o", "json")
    assert done.code == 2
    assert verdicts(done) == {"good": True, "bad": False}
    (error,) = done.err.splitlines()
    assert name in error
    assert json.loads(done.out)["errors"] == [error.removeprefix("aliquot: ")]


def test_every_broken_file_is_named_and_counted(aliquot: Run, folder: Path) -> None:
    for name in BROKEN:
        write(folder, name)
    done = aliquot("test", str(folder), str(folder / "missing"))
    assert done.code == 2
    assert len(done.err.splitlines()) == len(BROKEN) + 1
    assert done.out.splitlines()[-1] == f"1 passed, 1 failed, {len(BROKEN) + 1} broken"
    suite = ElementTree.fromstring(aliquot("test", str(folder), "-o", "junit").out)
    numbers = {word: suite.get(word) for word in ("tests", "failures", "errors")}
    assert numbers == {"tests": str(len(BROKEN) + 2), "failures": "1", "errors": str(len(BROKEN))}


def test_where_everything_is_broken_nothing_is_printed(aliquot: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    write(tmp_path / "broken", "no-yaml.yaml")
    done = aliquot("test", str(tmp_path / "broken"))
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


def test_without_broken_files_the_exit_code_is_that_of_the_verdicts(
    aliquot: Run, folder: Path
) -> None:
    assert aliquot("test", str(folder)).code == 1
    (folder / "z-bad.yaml").unlink()
    assert aliquot("test", str(folder)).code == 0
