"""Where the server is looked for, how it is recognised, and how it knows who asks."""

from pathlib import Path
from typing import Any

import pytest

from aliquot.errors import ApiError, InputError, UnreachableError
from aliquot.kube.api import access, credential
from aliquot.kube.api.access import find
from aliquot.kube.api.client import Client
from tests.cluster.kube.certificates import Authority
from tests.cluster.kube.kubeconfigs import AUTHORITY, HERE, SERVER, config, data, served_by, who
from tests.cluster.kube.scripted import refuses, says, scripted
from tests.cluster.kube.stories import story

ELSEWHERE, CLIENT = AUTHORITY.issue("elsewhere.example"), AUTHORITY.issue("a-client")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(access, "_ACCOUNT", tmp_path / "account")


async def _asked(kubeconfig: Path) -> dict[str, Any]:
    async with Client(find(kubeconfig)) as client:
        said: dict[str, Any] = await client.get("/")
        return said


def test_a_file_that_is_named_counts_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tmp_path / "home/.kube/config", {"server": "https://home.example"})
    assert find().url == "https://home.example"
    _be_a_pod(tmp_path, monkeypatch)
    assert find().url == "https://10.0.0.1:443"
    other = config(tmp_path / "env", {"server": "https://env.example"})
    monkeypatch.setenv("KUBECONFIG", str(other))
    assert find().url == "https://env.example"
    named = config(tmp_path / "named", {"server": "https://named.example/"})
    assert find(named).url == "https://named.example"


def test_a_context_is_looked_for_in_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be_a_pod(tmp_path, monkeypatch)
    config(tmp_path / "home/.kube/config", {"server": "https://home.example"}, name="two")
    assert find(context="two").url == "https://home.example"


def test_several_files_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = config(tmp_path / "a", {"server": "https://a.example"}, contexts=[])
    second = config(tmp_path / "b", {"server": "https://b.example"})
    third = config(tmp_path / "c", {"server": "https://c.example"}, name="three")
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{first}::{second}:{third}")
    assert find().url == "https://a.example"
    assert find(context="three").url == "https://c.example"
    monkeypatch.setenv("KUBECONFIG", str(missing))
    with pytest.raises(InputError, match="no such file"):
        find()


def test_nothing_found_says_where_it_looked() -> None:
    with pytest.raises(InputError, match=r"no .*/home/.kube/config, KUBECONFIG is not set"):
        find()


@pytest.mark.parametrize(
    ("cluster", "user", "field", "problem"),
    [
        ({}, {}, "clusters[one].cluster.server", "is missing"),
        ({"server": "ftp://x"}, {}, "clusters[one].cluster.server", "not an address"),
        ({"server": "https://x:port"}, {}, "clusters[one].cluster.server", "not an address"),
        ({"server": 7}, {}, "clusters[0].cluster.server", "text"),
        (
            {**HERE, "certificate-authority-data": "!"},
            {},
            "clusters[one].cluster.certificate-authority-data",
            "not base64",
        ),
        (
            {**HERE, "certificate-authority-data": data(b"nonsense")},
            {},
            "clusters[one].cluster.certificate-authority",
            "no certificates",
        ),
        (
            {**HERE, "certificate-authority": "missing.pem"},
            {},
            "clusters[one].cluster.certificate-authority",
            "missing.pem: No such file",
        ),
        (
            {
                **HERE,
                "insecure-skip-tls-verify": True,
                "certificate-authority-data": data(AUTHORITY.pem),
            },
            {},
            "insecure-skip-tls-verify",
            "contradicts",
        ),
        ({**HERE, "proxy-url": "socks5://x:1"}, {}, "clusters[one].cluster.proxy-url", "only http"),
        (
            HERE,
            {"username": "me", "password": "secret"},
            "users[one].user.username",
            "not supported",
        ),
        (HERE, {"auth-provider": {"name": "oidc"}}, "users[one].user.auth-provider", "exec plugin"),
        (
            HERE,
            {"client-certificate-data": data(CLIENT.chain)},
            "users[one].user.client-key",
            "is missing",
        ),
        (
            HERE,
            {"client-key-data": data(CLIENT.key)},
            "users[one].user.client-certificate",
            "is missing",
        ),
        (
            HERE,
            {
                "client-certificate-data": data(CLIENT.chain),
                "client-key-data": data(SERVER.key),
            },
            "users[one].user.client-certificate",
            "not a certificate and its key",
        ),
        (HERE, {"exec": {"command": "x"}}, "users[one].user.exec.apiVersion", "is expected"),
        (
            HERE,
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}},
            "users[one].user.exec.command",
            "is missing",
        ),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, cluster: Any, user: Any, field: str, problem: str
) -> None:
    file = config(tmp_path / "kubeconfig", cluster, user)
    with pytest.raises(InputError) as caught:
        find(file)
    assert str(file) in str(caught.value)
    assert field in str(caught.value)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "current-context: is missing"),
        ("hello", "expected"),
        ("a: [", "not YAML"),
        ("current-context: x\n", "contexts: no 'x'; there are none"),
        ("current-context: x\ncontexts: [{name: y}]\n", "no 'x'; there are y"),
        ("current-context: x\ncontexts: [{name: x}]\n", "names no cluster"),
        ("a: 1\n---\nb: 2\n", "one document"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(InputError, match="kubeconfig") as caught:
        find(file)
    assert problem in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        find(tmp_path / "missing")


@story
async def test_certificates_by_data_and_by_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pems").mkdir()
    for name, pem in (("ca", AUTHORITY.pem), ("crt", CLIENT.chain), ("key", CLIENT.key)):
        (tmp_path / "pems" / name).write_bytes(pem)
    ways: list[tuple[dict[str, str], dict[str, str]]] = [
        (
            {"certificate-authority-data": data(AUTHORITY.pem)},
            {
                "client-certificate-data": data(CLIENT.chain),
                "client-key-data": data(CLIENT.key),
            },
        ),
        (
            {"certificate-authority": "pems/ca"},
            {"client-certificate": "pems/crt", "client-key": "pems/key"},
        ),
    ]
    async with scripted(who, tls=served_by(SERVER, ask=True)) as script:
        for cluster, user in ways:
            file = config(tmp_path / "kubeconfig", {"server": script.url, **cluster}, user)
            assert (await _asked(file))["names"] == ["a-client"]


@story
async def test_a_server_is_not_believed_without_reason(tmp_path: Path) -> None:
    known: dict[str, Any] = {"certificate-authority-data": data(AUTHORITY.pem)}
    named: dict[str, Any] = {**known, "tls-server-name": "elsewhere.example"}
    anybody: dict[str, Any] = {"insecure-skip-tls-verify": True}
    file = tmp_path / "kubeconfig"
    async with scripted(who, tls=served_by(ELSEWHERE)) as script:
        for cluster in ({}, known, {"certificate-authority-data": data(Authority().pem)}):
            with pytest.raises(UnreachableError, match="certificate") as caught:
                await _asked(config(file, {"server": script.url, **cluster}))
            assert not caught.value.sent
        for cluster in (named, anybody):
            assert await _asked(config(file, {"server": script.url, **cluster}))


@story
async def test_tokens_and_somebody_elses_name(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "somebody",
        "as-uid": "7",
        "as-groups": ["one", "two"],
        "as-user-extra": {"a/b": ["x"]},
    }
    async with scripted(who) as script:
        said = await _asked(config(tmp_path / "k", {"server": script.url}, user))
    headers = [tuple(pair) for pair in said["headers"]]
    for pair in (
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "somebody"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "one"),
        ("Impersonate-Group", "two"),
        ("Impersonate-Extra-a%2Fb", "x"),
    ):
        assert pair in headers


@story
async def test_a_token_in_a_file_is_read_again_when_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("one\n")
    no = refuses(401, "Unauthorized")
    async with scripted(says({}), no, says({}), no, says({})) as script:
        file = config(tmp_path / "k", {"server": script.url}, {"tokenFile": "token", "token": "t"})
        async with Client(find(file)) as client:
            await client.post("/a", {})
            (tmp_path / "token").write_text("two\n")
            await client.post("/b", {})
            with pytest.raises(ApiError, match="401"):
                await client.get("/c")
            monkeypatch.setattr(credential, "_REREAD_SECONDS", 0.0)
            (tmp_path / "token").write_text("three\n")
            await client.get("/d")
            (tmp_path / "token").unlink()
            await client.get("/e")
    told = [(each.path, each.headers["Authorization"].split()[1]) for each in script.asked]
    assert told == [
        ("/a", "one"),
        ("/b", "one"),
        ("/b", "two"),
        ("/c", "two"),
        ("/d", "three"),
        ("/e", "three"),
    ]


@story
async def test_a_pod_speaks_for_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be_a_pod(tmp_path, monkeypatch)
    async with scripted(who, tls=served_by(SERVER)) as script:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", script.url.rpartition(":")[2])
        async with Client(find()) as client:
            said = await client.get("/")
    assert ["Authorization", "Bearer of-the-pod"] in said["headers"]
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    assert find().url == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("url", "exceptions", "through"),
    [
        ("https://api.example:6443", "", True),
        ("https://api.example:6443", "example", False),
        ("https://api.example:6443", ".example", False),
        ("https://api.example:6443", "other.example,api.example:443", True),
        ("https://api.example:6443", "api.example:6443", False),
        ("https://api.example:6443", "*", False),
        ("https://notexample:6443", "example", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "192.168.0.0/16", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("http://10.1.2.3:80", "", False),
    ],
)
def test_proxies_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, exceptions: str, through: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    found = find(config(tmp_path / "k", {"server": url})).proxy
    assert found == ("http://proxy.example:3128" if through else None)


@story
async def test_requests_go_through_the_proxy_that_the_kubeconfig_names(tmp_path: Path) -> None:
    async with scripted(who) as proxy:
        where = {"server": "http://cluster.invalid", "proxy-url": proxy.url}
        await _asked(config(tmp_path / "k", where, {"token": "t"}))
    assert proxy.asked[0].host == "cluster.invalid"


def _be_a_pod(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "account").mkdir()
    (folder / "account/ca.crt").write_bytes(AUTHORITY.pem)
    (folder / "account/token").write_text("of-the-pod")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
