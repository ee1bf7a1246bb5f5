"""Selectors: what they match, and what is refused, in which words."""

from typing import Any

import pytest

from aliquot.errors import SelectorError
from aliquot.server.selectors.selectors import Fields, Labels


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("  ", {"a": "b"}, True),
        ("a=b", {"a": "b"}, True),
        ("a = b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a=,b=c", {"a": "", "b": "c"}, True),
        ("a!=b", {"a": "c"}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a!=", {"a": ""}, False),
        ("a in (x,y)", {"a": "y"}, True),
        ("a in (x, y )", {"a": "x"}, True),
        ("a in (x,y)", {"a": "z"}, False),
        ("a in (x,y)", {}, False),
        ("a in ()", {"a": ""}, True),
        ("a in (,x)", {"a": ""}, True),
        ("a in (x,)", {"a": ""}, True),
        ("a notin (x,y)", {"a": "z"}, True),
        ("a notin (x,y)", {}, True),
        ("a notin (x,y)", {"a": "x"}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("! a", {}, True),
        ("!a", {"a": "b"}, False),
        ("a=b,c in (d),!e", {"a": "b", "c": "d"}, True),
        ("a=b,c in (d),!e", {"a": "b", "c": "d", "e": "f"}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "4"}, True),
        ("a>5", {"a": "many"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("in=notin", {"in": "notin"}, True),
        ("notin", {"notin": "x"}, True),
        ("nvidia.com/gpu.product=A100-SXM4", {"nvidia.com/gpu.product": "A100-SXM4"}, True),
    ],
)
def test_labels(text: str, labels: dict[str, str], matches: bool) -> None:
    assert Labels.parse(text).match(labels) is matches


def test_an_object_without_labels_has_none() -> None:
    assert Labels.parse("!a").match(None)
    assert not Labels.parse("a").match(None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=b,", "found '', expected: identifier after ','"),
        (",a=b", "unable to parse requirement: found ',', expected: identifier"),
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in x", "found 'x' expected: '('"),
        ("a in (x", "found '', expected: ',' or ')'"),
        ("a in (x y)", "found 'y', expected: ',' or ')'"),
        ("a in", "found '' expected: '('"),
        ("a in ((x))", "found '(', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "found '', expected: identifier"),
        ("=b", "found '=', expected: identifier"),
        ("a=(b)", "found '(', expected: identifier"),
        ("a===b", "found '=', expected: identifier"),
        ("-a=b", "name part must consist of alphanumeric characters"),
        ("/a=b", "prefix part must be non-empty"),
        ("x/=b", "name part must be non-empty"),
        ("x/y/z=b", "a valid label key must consist of"),
        ("UP.com/y=b", "prefix part a lowercase RFC 1123 subdomain"),
        (f"{'k' * 64}=b", "name part must be no more than 63 characters"),
        (f"a={'v' * 64}", "must be no more than 63 characters"),
        ("a=-b", "a valid label must be an empty string or consist of"),
        ("a in (b,c-)", 'values[1][a]: Invalid value: "c-"'),
        ("a>b", "the value must be an integer"),
        ("a>", "the value must be an integer"),
    ],
)
def test_labels_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Labels.parse(text)
    assert words in str(caught.value)


def test_a_selector_of_an_object_matches_as_one_of_a_url() -> None:
    selector = Labels.of(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert selector is not None
    assert selector.match({"app": "web", "tier": "b"})
    assert not selector.match({"app": "web", "tier": "b", "old": ""})
    assert not selector.match({"app": "web"})


def test_an_empty_selector_is_all_and_an_absent_one_is_nothing() -> None:
    everything = Labels.of({})
    assert everything is not None
    assert everything.match({})
    assert Labels.of(None) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"key": "a", "operator": "Like"}, '"Like" is not a valid label selector operator'),
        ({"key": "a", "operator": "In"}, "values set can't be empty"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "values set must be empty"),
        ({"key": "", "operator": "Exists"}, "name part must be non-empty"),
    ],
)
def test_expressions_that_make_no_sense(line: dict[str, Any], words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Labels.of({"matchExpressions": [line]})
    assert words in str(caught.value)


POD = {
    "metadata": {"name": "train", "namespace": "team-a"},
    "spec": {"nodeName": "n1", "hostNetwork": True, "schedulerName": "aliquot"},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
}
EVENT = {
    "metadata": {"name": "e", "namespace": "team-a"},
    "involvedObject": {"kind": "Pod", "name": "train", "uid": "u1"},
    "reason": "Bound",
    "type": "Normal",
    "reportingComponent": "aliquot",
}


@pytest.mark.parametrize(
    ("kind", "obj", "text", "matches"),
    [
        ("Pod", POD, "", True),
        ("Pod", POD, "metadata.name=train", True),
        ("Pod", POD, "metadata.name==train", True),
        ("Pod", POD, "metadata.name!=train", False),
        ("Pod", POD, "metadata.namespace!=team-b,spec.nodeName=n1", True),
        ("Pod", POD, ",metadata.name=train,", True),
        ("Pod", POD, "spec.nodeName=", False),
        ("Pod", POD, "spec.nodeName!=", True),
        ("Pod", {"metadata": {"name": "w"}}, "spec.nodeName=", True),
        ("Pod", {"metadata": {"name": "w"}, "spec": None}, "spec.nodeName=", True),
        ("Pod", POD, "status.phase!=Succeeded,status.phase!=Failed", True),
        ("Pod", POD, "spec.hostNetwork=true", True),
        ("Pod", {}, "spec.hostNetwork=false", True),
        ("Pod", POD, r"status.podIPs=10.0.0.1\,fd00::1", True),
        ("Pod", POD, "spec.schedulerName=aliquot", True),
        ("Node", {"spec": {"unschedulable": True}}, "spec.unschedulable=true", True),
        ("Node", {}, "spec.unschedulable=false", True),
        ("Namespace", {"status": {"phase": "Active"}}, "status.phase=Active", True),
        ("Secret", {"type": "Opaque"}, "type=Opaque", True),
        ("Job", {"status": {"succeeded": 3}}, "status.successful=3", True),
        ("ReplicaSet", {}, "status.replicas=0", True),
        ("Event", EVENT, "involvedObject.kind=Pod,involvedObject.name=train", True),
        ("Event", EVENT, "regarding.uid=u1,reason=Bound", True),
        ("Event", EVENT, "type!=Normal", False),
        ("Event", EVENT, "source=aliquot", True),
        ("ElasticQuota.nos.nebuly.com", POD, "metadata.name=train", True),
    ],
)
def test_fields(kind: str, obj: dict[str, Any], text: str, matches: bool) -> None:
    assert Fields.parse(text, kind).match(obj) is matches


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("Pod", "spec.priority=1", "field label not supported: spec.priority"),
        ("Node", "metadata.namespace=a", "field label not supported: metadata.namespace"),
        ("Job", "spec.suspend=true", 'field label "spec.suspend" not supported for Job'),
        ("ConfigMap", "data.a=b", '"data.a" is not a known field selector'),
        ("Job.batch.volcano.sh", "status.successful=1", '"status.successful" is not a known'),
        ("Pod", "metadata.name", "invalid selector: 'metadata.name'; can't understand"),
        ("Pod", "metadata.name=a=b", "unescaped character in value: ="),
        ("Pod", r"metadata.name=a\b", r"invalid escape sequence: \b"),
        ("Pod", "metadata.name=a\\", "invalid escape sequence: \\"),
    ],
)
def test_fields_that_cannot_be_asked_for(kind: str, text: str, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Fields.parse(text, kind)
    assert words in str(caught.value)


def test_a_value_may_hold_an_escaped_equals_sign() -> None:
    assert Fields.parse(r"metadata.name=a\=b\\", "Pod").only("metadata.name") == "a=b\\"


def test_the_only_value_of_a_field_is_known_beforehand() -> None:
    fields = Fields.parse("metadata.name=a,spec.nodeName!=b", "Pod")
    assert fields.only("metadata.name") == "a"
    assert fields.only("spec.nodeName") is None
