"""Credentials from programs: when those are run, what they are told, what they may answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api import exec_plugin
from aliquot.kube.api.access import find
from aliquot.kube.api.client import Client
from tests.cluster.kube.kubeconfigs import AUTHORITY, SERVER, config, data, served_by, who
from tests.cluster.kube.scripted import Scripted, Step, refuses, says, scripted
from tests.cluster.kube.stories import story

V1 = "client.authentication.k8s.io/v1"
COUNTS = """#!/bin/sh
echo run >> "$(dirname "$0")/runs"
n=$(wc -l < "$(dirname "$0")/runs")
echo "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"
sed "s/NUMBER/$n/" "$(dirname "$0")/answer"
"""


def plugin(folder: Path, answer: Any, **said: Any) -> dict[str, Any]:
    """A program beside the kubeconfig that gives this answer; NUMBER in it counts its runs."""
    program = folder / "plugin"
    program.write_text(said.pop("program", COUNTS))
    program.chmod(0o755)
    text = answer if isinstance(answer, str) else json.dumps(given(**answer))
    (folder / "answer").write_text(text)
    return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **said}}


def given(version: str = V1, **status: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def tokens(script: Any) -> list[str]:
    return [request.headers["Authorization"] for request in script.asked]


@asynccontextmanager
async def asking(
    folder: Path, user: dict[str, Any], *steps: Step, **cluster: Any
) -> AsyncIterator[tuple[Client, Scripted]]:
    """A server, and a client that has its credentials from the plugin."""
    tls = served_by(SERVER, ask=True) if cluster else None
    async with scripted(*steps, tls=tls) as script:
        where = {"server": script.url, **cluster}
        async with Client(find(config(folder / "k", where, user))) as client:
            yield client, script


@story
async def test_a_token_is_asked_for_once_and_again_when_refused(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "t-NUMBER"})
    steps = says({}), says({}), refuses(401, "Unauthorized"), says({})
    async with asking(tmp_path, user, *steps) as (client, script):
        assert not (tmp_path / "runs").exists()
        await client.get("/a")
        await client.get("/b")
        await client.post("/c", {})
        async with client.stream("/d"):
            pass
    assert tokens(script) == [f"Bearer t-{n}" for n in (1, 1, 1, 2, 2)]
    assert runs(tmp_path) == 2


@story
async def test_one_that_is_refused_twice_is_refused(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "t-NUMBER"})
    async with asking(tmp_path, user, refuses(401, "Unauthorized")) as (client, script):
        with pytest.raises(ApiError, match="401 Unauthorized"):
            await client.get("/a")
    assert tokens(script) == ["Bearer t-1", "Bearer t-2"]


@story
async def test_many_who_ask_at_once_share_one_run(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "t-NUMBER"}, program=COUNTS.replace("n=$", "sleep 0.1; n=$"))
    no = refuses(401, "Unauthorized")
    async with asking(tmp_path, user, *[no] * 10, says({})) as (client, script):
        await asyncio.gather(*(client.get("/a") for _ in range(10)))
    assert runs(tmp_path) == 2
    assert tokens(script) == ["Bearer t-1"] * 10 + ["Bearer t-2"] * 10


@pytest.mark.parametrize(
    ("seconds", "expected"), [(3600, 1), (5, 2), (-60, 2)], ids=["valid", "nearly over", "over"]
)
@story
async def test_a_token_is_kept_until_it_expires(
    tmp_path: Path, seconds: int, expected: int
) -> None:
    until = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(tmp_path, {"token": "t-NUMBER", "expirationTimestamp": until})
    async with asking(tmp_path, user, says({})) as (client, _):
        await client.get("/a")
        await client.get("/b")
    assert runs(tmp_path) == expected


@story
async def test_certificates_are_used_and_exchanged(tmp_path: Path) -> None:
    def answer(name: str) -> dict[str, Any]:
        issued = AUTHORITY.issue(name)
        chain, key = issued.chain.decode(), issued.key.decode()
        return plugin(tmp_path, {"clientCertificateData": chain, "clientKeyData": key})

    known = {"certificate-authority-data": data(AUTHORITY.pem)}
    steps = who, who, refuses(401), who
    async with asking(tmp_path, answer("first"), *steps, **known) as (client, _):
        assert (await client.get("/"))["names"] == ["first"]
        answer("second")
        assert (await client.get("/"))["names"] == ["first"]
        assert (await client.get("/"))["names"] == ["second"]


@pytest.mark.parametrize("version", exec_plugin.VERSIONS)
@story
async def test_plugins_are_told_of_the_cluster_if_they_want_to_know(
    tmp_path: Path, version: str
) -> None:
    (tmp_path / "ca").write_bytes(AUTHORITY.pem)
    more = {"extension": {"audience": "x"}, "name": "client.authentication.k8s.io/exec"}
    answer = json.dumps(given(version, token="t"))
    program = COUNTS + 'echo "$1 $FLAVOUR" > "$(dirname "$0")/words"\n'
    about = {"provideClusterInfo": True, "args": ["get token"], "program": program}
    user = plugin(tmp_path, answer, apiVersion=version, **about)
    user["exec"]["env"] = [{"name": "FLAVOUR", "value": "sweet"}]
    async with scripted(says({}), tls=served_by(SERVER)) as script:
        cluster = {"server": script.url, "certificate-authority": "ca", "extensions": [more]}
        access = find(config(tmp_path / "k", cluster, user))
        async with Client(access) as client:
            await client.get("/")
    assert (tmp_path / "words").read_text() == "get token sweet\n"
    info = json.loads((tmp_path / "info").read_text())
    assert (info["apiVersion"], info["kind"]) == (version, "ExecCredential")
    assert info["spec"] == {
        "interactive": False,
        "cluster": {
            "server": script.url,
            "certificate-authority-data": data(AUTHORITY.pem),
            "config": {"audience": "x"},
        },
    }


@pytest.mark.parametrize(
    ("answer", "said", "problem"),
    [
        ("secret", {}, "not an ExecCredential"),
        ('{"kind": "Pod"}', {}, "not an ExecCredential of client.authentication.k8s.io/v1"),
        ({"version": exec_plugin.VERSIONS[1], "token": "secret"}, {}, "not an ExecCredential of"),
        ({}, {}, "neither a token nor a certificate"),
        ({"clientCertificateData": "secret"}, {}, "a certificate without a key"),
        ({"token": "x"}, {"program": "#!/bin/sh\necho oh no >&2; exit 3"}, "ended with 3: oh no"),
        ({"token": "x"}, {"command": "./missing", "installHint": "get it"}, "get it"),
        ({"token": "x"}, {"command": "no-such-program"}, "cannot be run"),
        ({"token": "x"}, {"program": "#!/bin/sh\nexec sleep 100"}, "no answer in"),
    ],
)
@story
async def test_what_a_plugin_does_wrong_is_told_but_not_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, said: Any, problem: str
) -> None:
    monkeypatch.setattr(exec_plugin, "_RUN_SECONDS", 0.3 if "no answer" in problem else 20)
    user = plugin(tmp_path, answer, **said)
    async with asking(tmp_path, user, says({})) as (client, script):
        with pytest.raises(UnreachableError) as caught:
            await client.get("/a")
    assert not caught.value.sent
    assert "credential plugin" in str(caught.value)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not script.asked
