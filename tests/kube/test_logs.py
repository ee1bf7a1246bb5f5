"""What gets into the log, in which form, and what never does."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from aliquot.kube.observe import logs

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGlxdW90In0.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root, access = logging.getLogger(), logging.getLogger("aiohttp.access")
    handlers, level, access_level = root.handlers, root.level, access.level
    yield
    root.handlers, root.level = handlers, level
    access.setLevel(access_level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(capture: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    said = capture.readouterr()
    assert said.out == ""
    return [json.loads(line) for line in said.err.splitlines()]


def test_json_has_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "info")
    structlog.get_logger("aliquot.kube.lease").info("this replica leads", transitions=3)
    (line,) = lines(capsys)
    stamp = line.pop("timestamp")
    assert stamp.endswith("Z")
    assert stamp[10] == "T"
    assert line == {
        "event": "this replica leads",
        "level": "info",
        "logger": "aliquot.kube.lease",
        "transitions": 3,
    }


def test_what_libraries_log_comes_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "info")
    logging.getLogger("aiohttp.client").warning("closing %d connections", 2, extra={"host": "a"})
    logging.getLogger("aiohttp.access").info("GET /livez")
    (line,) = lines(capsys)
    assert (line["event"], line["level"]) == ("closing 2 connections", "warning")
    assert (line["logger"], line["host"]) == ("aiohttp.client", "a")


def test_what_is_below_the_level_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "warning")
    structlog.get_logger("aliquot").info("no")
    structlog.get_logger("aliquot").warning("yes")
    logging.getLogger("asyncio").info("no")
    assert [line["event"] for line in lines(capsys)] == ["yes"]


def test_the_last_set_up_counts(capsys: pytest.CaptureFixture[str]) -> None:
    log = structlog.get_logger("aliquot")
    logs.set_up("json", "error")
    log.info("no")
    logs.set_up("json", "debug")
    log.debug("yes")
    assert [line["event"] for line in lines(capsys)] == ["yes"]


def test_the_console_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("console", "info")
    structlog.get_logger("aliquot").info("this replica leads", transitions=3)
    said = capsys.readouterr().err
    assert "this replica leads" in said
    assert "transitions=3" in said
    assert "\x1b" not in said  # not a terminal
    with pytest.raises(json.JSONDecodeError):
        json.loads(said)


def leak(password: str) -> None:
    raise ValueError(f"cannot log in with Bearer {TOKEN}")


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_show_neither_tokens_nor_variables(
    form: logs.Form, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up(form, "info")
    try:
        leak("hunter" + "2")
    except ValueError:
        structlog.get_logger("aliquot").exception("failed")
        logging.getLogger("aiohttp.server").exception("failed, too")
    said = capsys.readouterr().err
    assert said.count("Traceback") == 2
    assert said.count("cannot log in with Bearer [secret]") == 2
    assert "hunter2" not in said
    assert TOKEN not in said


@pytest.mark.parametrize(
    "said",
    [
        {"headers": {"Authorization": f"Bearer {TOKEN}"}},
        {"headers": [("Authorization", f"Bearer {TOKEN}")]},
        {"token": TOKEN},
        {"id_token": TOKEN, "deep": [{"clientKeyData": TOKEN}]},
        {"body": f'{{"kind": "ExecCredential", "status": {{"token": "{TOKEN}"}}}}'},
        {"url": f"https://example.invalid/?access_token={TOKEN}&watch=1"},
        {"error": ValueError(f"token={TOKEN}")},
        {"bytes": f"Bearer {TOKEN}".encode()},
        {"event": f"Basic {TOKEN}"},
        {"key": f"-----BEGIN RSA PRIVATE KEY-----\n{TOKEN}\n-----END RSA PRIVATE KEY-----"},
        {"key": f"-----BEGIN PRIVATE KEY-----\n{TOKEN}"},
        {"words": f"it said {TOKEN}."},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["json", "console"])
def test_no_token_gets_into_the_log(
    form: logs.Form, said: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up(form, "debug")
    structlog.get_logger("aliquot").info(**{"event": "request", **said})
    printed = capsys.readouterr().err
    assert "[secret]" in printed
    assert not [part for part in TOKEN.split(".") if part in printed]


def test_what_is_no_secret_stays(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "info")
    words = "pod team/tokenizer-1: the basic idea, bearer of news; token expired"
    said = {"words": words, "pods": ["a", "b"], "number": 1.5, "nothing": None, "yes": True}
    structlog.get_logger("aliquot").info("told", **said)
    (line,) = lines(capsys)
    assert {name: line[name] for name in said} == said
