"""API servers to try things on: the embedded one, and kube-apiserver over etcd where they are.

The real one is looked for where envtest looks: in `KUBEBUILDER_ASSETS`, or in
`/usr/local/kubebuilder/bin`. All run as processes of their own, answer on the loopback interface
only, keep their state in a folder that is given, and end with the block. None of this is for
clusters that anybody depends on: etcd does not wait for the disk.
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


@dataclass(frozen=True, slots=True)
class Store:
    """etcd, where its clients reach it."""

    url: str
    child: Child


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, and the file that says how to reach it."""

    kubeconfig: Path
    child: Child
    etcd: Store | None = None

    @property
    def real(self) -> bool:
        """Is it kube-apiserver?"""
        return self.etcd is not None


def assets() -> Path | None:
    """The folder of kube-apiserver and etcd, if they are there."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")
    return folder if all((folder / name).exists() for name in ("kube-apiserver", "etcd")) else None


def version() -> str | None:
    """The real server by name and version, if it is there."""
    if assets() is None:
        return None
    said = subprocess.run(
        [_binary("kube-apiserver"), "--version"], capture_output=True, text=True, check=True
    )
    return f"kube-apiserver {said.stdout.split()[-1]}"


@contextmanager
def embedded(folder: Path, keep: bool = True) -> Iterator[Server]:
    """`aliquot up` with neither nodes nor a scheduler: the API server alone.

    With `keep`, another one over the same folder goes on where this one ended, at the same address.
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
    """kube-apiserver over this etcd: no controllers, and everything allowed to who has the token.

    What others may do is a matter of `authorization`: with `RBAC`, what roles say.
    Two plugins of admission are off because they count on controllers: one makes pods wait for
    service accounts, the other taints new nodes until the node controller has seen them. Another
    one over the same folder is at the same address, and knows the same accounts.
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
    """Does a server say yes to this?

    Without an authority any certificate will do: for servers of ours that sign their own.
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
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _port_before(file: Path) -> int | None:
    """The port of the server that wrote this kubeconfig, if one did."""
    if not file.exists():
        return None
    said = yaml.safe_load(file.read_text())
    return urlsplit(str(said["clusters"][0]["cluster"]["server"])).port


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
