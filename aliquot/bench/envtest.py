"""API servers for benchmarks and tests: the embedded one, and kube-apiserver over etcd.

The binaries of the real one are looked for where envtest looks: in `KUBEBUILDER_ASSETS`, or in
`/usr/local/kubebuilder/bin`. All servers are processes of their own, listen on the loopback
interface only, keep their state in a given folder, and end with their block. Never for production:
etcd runs without fsync.
"""

import os
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from aliquot.bench.process import Child, child
from aliquot.errors import ProcessError
from aliquot.server.credentials import kubeconfig

MISSING = (
    "no kube-apiserver and etcd in KUBEBUILDER_ASSETS or, without it, in /usr/local/kubebuilder/bin"
)
_TOKEN = "a-token-of-the-loopback"
"""No secret: kube-apiserver listens on the loopback interface for the length of a test."""


@dataclass(frozen=True, slots=True)
class Store:
    """A running etcd and the URL of its clients."""

    url: str
    child: Child


@dataclass(frozen=True, slots=True)
class Server:
    """A running API server and its kubeconfig."""

    kubeconfig: Path
    child: Child
    etcd: Store | None = None

    @property
    def real(self) -> bool:
        """Is it kube-apiserver?"""
        return self.etcd is not None


def assets() -> Path | None:
    """The folder of kube-apiserver and etcd; None if one is missing."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")
    return folder if all((folder / name).exists() for name in ("kube-apiserver", "etcd")) else None


def version() -> str | None:
    """Name and version of kube-apiserver; None without its binary."""
    if assets() is None:
        return None
    printed = subprocess.run(
        [_binary("kube-apiserver"), "--version"], capture_output=True, text=True, check=True
    )
    return f"kube-apiserver {printed.stdout.split()[-1]}"


@contextmanager
def embedded(folder: Path, keep: bool = True) -> Iterator[Server]:
    """`aliquot up` without nodes and scheduler: the API server alone.

    With `keep`, a later one over the same folder has the same objects and the same address.
    """
    file, log = folder / "kubeconfig", folder / "log"
    log.unlink(missing_ok=True)
    options = ["--no-scheduler", "--nodes", "0", "--port", str(_port_before(file) or 0)]
    files = ["--kubeconfig", str(file), *(["--data-dir", str(folder / "data")] if keep else [])]
    with child([sys.executable, "-m", "aliquot", "up", *options, *files], folder) as made:
        made.wait(lambda: "\nurl: " in log.read_text(errors="replace"))
        yield Server(file, made)


@contextmanager
def etcd(folder: Path) -> Iterator[Store]:
    """Etcd alone."""
    clients, peers = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    command = [_binary("etcd"), "--data-dir", str(folder / "data"), "--unsafe-no-fsync"]
    command += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
    command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    command += ["--initial-cluster", f"default={peers}", "--log-level", "warn"]
    with child(command, folder) as made:
        made.wait(lambda: answers(f"{clients}/health"))
        yield Store(clients, made)


@contextmanager
def real(folder: Path, store: Store, authorization: str = "AlwaysAllow") -> Iterator[Server]:
    """kube-apiserver over this etcd, without controllers; the token is of system:masters.

    What other users may do follows from `authorization`: with `RBAC`, from their roles.
    Two admission plugins are off because they rely on controllers: ServiceAccount makes pods wait
    for service accounts, TaintNodesByCondition taints new nodes until the node controller has seen
    them. A later one over the same folder has the same address and the same signing key.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = _port_before(folder / "kubeconfig") or free_ports(1)[0]
    key, tokens = folder / "service-accounts.pem", folder / "tokens.csv"
    if not key.exists():
        key.write_bytes(_private_key())
    tokens.write_text(f"{_TOKEN},suite,suite,system:masters\n")
    certificate = folder / "certificates" / "apiserver.crt"
    url = f"https://127.0.0.1:{port}"
    file = folder / "kubeconfig"
    where = {"server": url, "certificate-authority": str(certificate)}
    file.write_text(yaml.safe_dump(kubeconfig(where, _TOKEN)))
    command = [_binary("kube-apiserver"), "--etcd-servers", store.url, "--secure-port", str(port)]
    command += ["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"]
    command += ["--cert-dir", str(certificate.parent), "--token-auth-file", str(tokens)]
    command += ["--service-account-issuer", "https://suite.invalid"]
    command += ["--service-account-key-file", str(key)]
    command += ["--service-account-signing-key-file", str(key)]
    command += ["--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none"]
    command += ["--authorization-mode", authorization, "--disable-admission-plugins"]
    command += ["ServiceAccount,TaintNodesByCondition", "--profiling=false"]
    with child(command, folder) as made:
        made.wait(lambda: certificate.exists() and answers(f"{url}/readyz", _TOKEN, certificate))
        yield Server(file, made, store)


def answers(url: str, token: str = "", authority: Path | None = None) -> bool:
    """Does a GET of this URL answer 200?

    Without an authority any certificate is accepted: for probes of servers that sign their own.
    """
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        context = _trusting(authority) if url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False  # not listening yet, or not ready


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _port_before(file: Path) -> int | None:
    """The port of the server in this kubeconfig; None without the file."""
    if not file.exists():
        return None
    read = yaml.safe_load(file.read_text())
    return urlsplit(str(read["clusters"][0]["cluster"]["server"])).port


def _binary(name: str) -> str:
    folder = assets()
    if folder is None:
        raise ProcessError(MISSING)
    return str(folder / name)


def _trusting(authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _private_key() -> bytes:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
