"""The kubeconfig: where the server is and what lets one in, for its owner's eyes only."""

import base64
from pathlib import Path

import yaml

from aliquot.server.credentials import Credentials, write_private

_NAME = "aliquot"


def write(file: Path, url: str, credentials: Credentials) -> None:
    """Write a kubeconfig with one cluster, one user and one context."""
    authority = base64.b64encode(credentials.authority.read_bytes()).decode()
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": _NAME, "cluster": {"server": url, "certificate-authority-data": authority}}
        ],
        "users": [{"name": _NAME, "user": {"token": credentials.token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    write_private(file, yaml.safe_dump(body, sort_keys=False).encode())
