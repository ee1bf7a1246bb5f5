"""Starts the servers that the suite asks: ours by its command line, the real one from its binaries.

Both answer on the loopback interface only, keep their state in a folder of the test run, and are
ended with it. What a server prints goes to `log` in that folder, and into the error if it dies.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import urllib3
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes.config import ConfigException

from tests.cluster.api import binaries
from tests.cluster.api.wire import Wire

_TOKEN = "a-token-of-the-suite"
_PATIENCE = 60.0


@dataclass(frozen=True)
class Server:
    """A server that runs, and the file that says how to reach it."""

    kubeconfig: Path
    etcd: str | None = None

    @property
    def real(self) -> bool:
        return self.etcd is not None


@contextmanager
def embedded(folder: Path) -> Iterator[Server]:
    """`aliquot up` with neither nodes nor a scheduler: the API server alone.

    Started again in the same folder, it is where it was before.
    """
    kubeconfig = folder / "kubeconfig"
    port = _port_before(kubeconfig) or 0
    kubeconfig.unlink(missing_ok=True)
    options = ["--no-scheduler", "--nodes", "0", "--port", str(port)]
    files = ["--kubeconfig", str(kubeconfig), "--data-dir", str(folder / "data")]
    with _running([sys.executable, "-m", "aliquot", "up", *options, *files], folder) as process:
        _wait(lambda: kubeconfig.exists() and _ready(kubeconfig), process, folder)
        yield Server(kubeconfig)


@contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """etcd alone, with the address of its clients."""
    clients, peers = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    command = [_binary("etcd"), "--data-dir", str(folder / "data"), "--unsafe-no-fsync"]
    command += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
    command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    command += ["--initial-cluster", f"default={peers}", "--log-level", "warn"]
    with _running(command, folder) as process:
        _wait(lambda: _answers(f"{clients}/health"), process, folder)
        yield clients


@contextmanager
def real(folder: Path, store: str, authorization: str = "AlwaysAllow") -> Iterator[Server]:
    """kube-apiserver over this etcd: no controllers, and everything allowed to who has the token.

    What others may do is a matter of `authorization`: with `RBAC`, what roles say.
    Two plugins of admission are off because they count on controllers: one makes pods wait for
    service accounts, the other taints new nodes until the node controller has seen them. Started
    again in the same folder, it is where it was before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = _port_before(folder / "kubeconfig") or _free_ports(1)[0]
    key, tokens = folder / "service-accounts.pem", folder / "tokens.csv"
    key.write_bytes(_private_key())
    tokens.write_text(f"{_TOKEN},suite,suite,system:masters\n")
    certificate = folder / "certificates" / "apiserver.crt"
    kubeconfig = _kubeconfig(folder / "kubeconfig", port, certificate)
    command = [
        _binary("kube-apiserver"),
        "--etcd-servers",
        store,
        "--secure-port",
        str(port),
    ]
    command += ["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"]
    command += ["--cert-dir", str(certificate.parent), "--token-auth-file", str(tokens)]
    command += ["--service-account-issuer", "https://suite.invalid"]
    command += ["--service-account-key-file", str(key)]
    command += ["--service-account-signing-key-file", str(key)]
    command += ["--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none"]
    command += ["--authorization-mode", authorization, "--disable-admission-plugins"]
    command += ["ServiceAccount,TaintNodesByCondition", "--profiling=false"]
    with _running(command, folder) as process:
        _wait(lambda: certificate.exists() and _ready(kubeconfig), process, folder)
        yield Server(kubeconfig, store)


def compact(store: str) -> None:
    """Make the real server forget: all that etcd kept of older versions goes."""
    at = urllib3.request("POST", f"{store}/v3/kv/range", json={"key": "AA=="}).json()
    revision = at["header"]["revision"]
    answer = urllib3.request("POST", f"{store}/v3/kv/compaction", json={"revision": revision})
    assert answer.status == 200, answer.data


def _binary(name: str) -> str:
    folder = binaries.real_server()
    assert folder is not None, binaries.NO_REAL_SERVER
    return str(folder / name)


@contextmanager
def _running(command: Sequence[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(ready: Callable[[], bool], process: "subprocess.Popen[bytes]", folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not ready():
        said = (folder / "log").read_text(errors="replace")[-3000:]
        if process.poll() is not None:
            raise RuntimeError(f"{folder.name} ended with {process.returncode}: {said}")
        if time.monotonic() > end:
            raise RuntimeError(f"{folder.name} is not ready after {_PATIENCE:.0f} s: {said}")
        time.sleep(0.05)


def _ready(kubeconfig: Path) -> bool:
    try:
        return Wire(kubeconfig).get("/readyz").code == 200
    except (ConfigException, yaml.YAMLError, urllib3.exceptions.HTTPError):
        return False  # not written to the end, or not listening yet


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _port_before(kubeconfig: Path) -> int | None:
    """The port of the server that was last started with this file, if any was."""
    if not kubeconfig.exists():
        return None
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    where: str = cluster["cluster"]["server"]
    return urlsplit(where).port


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _private_key() -> bytes:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _kubeconfig(file: Path, port: int, certificate: Path) -> Path:
    where = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(certificate)}
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "suite", "cluster": where}],
        "users": [{"name": "suite", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "suite", "context": {"cluster": "suite", "user": "suite"}}],
        "current-context": "suite",
    }
    file.write_text(yaml.safe_dump(said))
    return file
