"""Credentials: a certificate authority, the server's certificate, and the token that lets one in.

They are made once for a data folder and kept there, so that a kubeconfig outlives a restart. Files
are readable by their owner only.
"""

import datetime
import os
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

from aliquot import certificates

_YEARS = datetime.timedelta(days=3650)
_NAMES = (
    *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("127.0.0.1", "::1"),
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What proves who the server is, and what a client must know."""

    folder: Path
    token: str

    @property
    def authority(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / "ca.crt"

    def context(self) -> ssl.SSLContext:
        """TLS as the server speaks it."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return context


def credentials(folder: Path, host: str) -> Credentials:
    """Those of a folder, made if they are not there or are for another address."""
    files = [folder / name for name in ("ca.crt", "server.crt", "server.key", "token", "host")]
    if not all(file.exists() for file in files) or files[-1].read_text() != host:
        _make(folder, host)
    return Credentials(folder, (folder / "token").read_text())


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)


def _make(folder: Path, host: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = certificates.make_authority("aliquot-ca", now, _YEARS)
    server = certificates.issue_serving(authority, "kube-apiserver", (*_NAMES, host), now, _YEARS)
    write_private(folder / "ca.crt", authority.certificate)
    write_private(folder / "server.crt", server.certificate)
    write_private(folder / "server.key", server.key)
    if not (folder / "token").exists():
        write_private(folder / "token", secrets.token_urlsafe(32).encode())
    write_private(folder / "host", host.encode())
