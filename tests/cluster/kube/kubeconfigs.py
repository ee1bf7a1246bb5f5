"""Kubeconfigs for tests, and servers that tell who asked them."""

import base64
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml
from aiohttp import web

from tests.cluster.kube.certificates import Authority, Issued

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("loopback")
HERE = {"server": "https://10.1.2.3:6443"}


def config(
    file: Path,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    name: str = "one",
    **more: Any,
) -> Path:
    """A kubeconfig with one context."""
    said = {
        "clusters": [{"name": name, "cluster": HERE if cluster is None else cluster}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        **more,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(said))
    return file


def served_by(issued: Issued, ask: bool = False) -> ssl.SSLContext:
    """TLS of a server; it may ask who comes."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with NamedTemporaryFile() as file:
        file.write(issued.chain + issued.key)
        file.flush()
        made.load_cert_chain(file.name)
    if ask:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=AUTHORITY.pem.decode())
    return made


def data(pem: bytes) -> str:
    """As it stands in a kubeconfig."""
    return base64.b64encode(pem).decode()


async def who(request: web.Request) -> web.StreamResponse:
    """Says whose certificate it has seen, and what the headers say."""
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert") or {}
    names = [value for part in peer.get("subject", ()) for _, value in part]
    return web.json_response({"names": names, "headers": list(request.headers.items())})
