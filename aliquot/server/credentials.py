"""Credentials: certificate authority, server certificate and bearer token, and their kubeconfig.

They are made once for a data folder and kept there, so that a kubeconfig stays valid over restarts
of the server. All files are readable by their owner only.
"""

import base64
import datetime
import os
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

import yaml

from aliquot import certificates
from aliquot.json import Body

_LIFETIME = datetime.timedelta(days=3650)
"""Of certificates: ten years, so that a data folder never outlives them; nothing renews them."""
_CONTEXT = "aliquot"
"""The name of cluster, user and context in a kubeconfig."""
_NAMES = (
    *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("127.0.0.1", "::1"),
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files of a data folder, and the token that clients send."""

    folder: Path
    token: str

    @property
    def authority(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / "ca.crt"

    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return context


def credentials(folder: Path, host: str) -> Credentials:
    """The credentials of a folder; made if they are missing or for another address."""
    files = [folder / name for name in ("ca.crt", "server.crt", "server.key", "token", "host")]
    if not all(file.exists() for file in files) or files[-1].read_text() != host:
        _make(folder, host)
    for file in files:
        file.chmod(0o600)  # one that was copied here may be open to others
    return Credentials(folder, (folder / "token").read_text())


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)


def _make(folder: Path, host: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = certificates.make_authority("aliquot-ca", now, _LIFETIME)
    server = certificates.issue_serving(
        authority, "kube-apiserver", (*_NAMES, host), now, _LIFETIME
    )
    write_private(folder / "ca.crt", authority.certificate)
    write_private(folder / "server.crt", server.certificate)
    write_private(folder / "server.key", server.key)
    if not (folder / "token").exists():
        write_private(folder / "token", secrets.token_urlsafe(32).encode())
    write_private(folder / "host", host.encode())


def write_kubeconfig(file: Path, url: str, found: Credentials) -> None:
    """Write a kubeconfig with one cluster, one user and one context."""
    authority = base64.b64encode(found.authority.read_bytes()).decode()
    cluster = {"server": url, "certificate-authority-data": authority}
    body = kubeconfig(cluster, found.token)
    write_private(file, yaml.safe_dump(body, sort_keys=False).encode())


def kubeconfig(cluster: Body, token: str) -> Body:
    """A kubeconfig of one cluster and one user, who has a token."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CONTEXT, "cluster": cluster}],
        "users": [{"name": _CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": _CONTEXT, "context": {"cluster": _CONTEXT, "user": _CONTEXT}}],
        "current-context": _CONTEXT,
    }
