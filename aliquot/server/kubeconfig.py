"""The kubeconfig: where the server is and what lets one in, for its owner's eyes only."""

import base64
from pathlib import Path

import yaml

from aliquot.json import Body
from aliquot.server.credentials import Credentials, write_private

_NAME = "aliquot"


def write(file: Path, url: str, credentials: Credentials) -> None:
    """Write a kubeconfig with one cluster, one user and one context."""
    authority = base64.b64encode(credentials.authority.read_bytes()).decode()
    said = body({"server": url, "certificate-authority-data": authority}, credentials.token)
    write_private(file, yaml.safe_dump(said, sort_keys=False).encode())


def body(cluster: Body, token: str) -> Body:
    """What it says of one cluster and one user, who has a token."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
