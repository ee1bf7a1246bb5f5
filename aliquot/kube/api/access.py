"""Access: the address of the API server, and the credentials for it.

Both are looked for where kubectl looks, and in a pod also in its service account. A mistake in a
kubeconfig is an `InputError` that names file and field. An authentication method that is not
supported is refused, never ignored: requests would be sent with other rights than the user meant.
Nothing here sends a request.
"""

import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from multidict import CIMultiDict

from aliquot.errors import InputError
from aliquot.kube.api import kubeconfig as files
from aliquot.kube.api import proxy
from aliquot.kube.api.credential import (
    Credential,
    CredentialSource,
    StaticCredential,
    TokenFile,
    with_token,
)
from aliquot.kube.api.exec_plugin import VERSIONS, Command, ExecPlugin
from aliquot.kube.api.kubeconfig import Choice, ClusterEntry, ExecEntry, Placed, UserEntry
from aliquot.kube.api.tls import Certificate, Trust

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the token and the CA of a pod's service account."""
_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster entry that exec plugins are given as `config`."""
_INTERACTIVE = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True, slots=True)
class Access:
    """The address of an API server, and the credentials for it."""

    url: str
    credentials: CredentialSource
    server_name: str | None = None
    """The name that the server's certificate must have, if not that of the address."""
    proxy: str | None = None


def find(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """The first of: the given file, KUBECONFIG, this pod's service account, ~/.kube/config."""
    if kubeconfig is not None:
        return _from_kubeconfig(files.choose([kubeconfig], context))
    if listed := os.environ.get("KUBECONFIG"):
        there = [Path(each) for each in listed.split(os.pathsep) if each and Path(each).exists()]
        if not there:
            raise InputError("KUBECONFIG", "", f"{listed}: no such file")
        return _from_kubeconfig(files.choose(there, context))
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST") and _ACCOUNT.is_dir():
        return _from_service_account()
    home = Path(os.path.expanduser("~/.kube/config"))
    if not home.exists():
        problem = f"no {home}, KUBECONFIG is not set, and this is not a pod; name a kubeconfig"
        raise InputError("kubeconfig", "", problem)
    return _from_kubeconfig(files.choose([home], context))


def _from_service_account() -> Access:
    """Access of a pod to its own cluster."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT")
    url = f"https://{f'[{host}]' if ':' in host else host}:{port or 443}"
    authority = _ACCOUNT / "ca.crt"
    try:
        tls = Trust(authority.read_bytes()).context()
    except (OSError, ValueError) as error:
        raise InputError(str(authority), "", str(error)) from None
    through = proxy.from_environment(url, os.environ)
    return Access(url, TokenFile(_ACCOUNT / "token", tls, CIMultiDict()), proxy=through)


def _from_kubeconfig(choice: Choice) -> Access:
    """Access as the chosen context of a kubeconfig describes it."""
    cluster = choice.cluster.entry
    url = _url(choice.cluster)
    trust = _trust(choice.cluster) if url.startswith("https:") else None
    if cluster.proxy_url:
        place, field = str(choice.cluster.file), f"{choice.cluster.field}.proxy-url"
        through: str | None = proxy.checked(cluster.proxy_url, place, field)
    else:
        through = proxy.from_environment(url, os.environ)
    return Access(url, _credentials(choice, trust), cluster.tls_server_name or None, through)


def _url(cluster: Placed[ClusterEntry]) -> str:
    given = (cluster.entry.server or "").rstrip("/")
    if not given:
        raise cluster.error("server", "is missing")
    try:
        where = urlsplit(given if "://" in given else f"http://{given}")
        fits = where.scheme in ("http", "https") and bool(where.hostname) and where.port != 0
    except ValueError:
        fits = False
    if not fits or where.username or where.query or where.fragment:
        raise cluster.error("server", "not an address such as https://10.0.0.1:6443")
    return where.geturl()


def _trust(cluster: Placed[ClusterEntry]) -> Trust:
    entry = cluster.entry
    authority = cluster.content(
        "certificate-authority", entry.certificate_authority, entry.certificate_authority_data
    )
    insecure = bool(entry.insecure_skip_tls_verify)
    if insecure and authority is not None:
        raise cluster.error("insecure-skip-tls-verify", "contradicts certificate-authority")
    trust = Trust(authority, insecure)
    _context(trust, None, cluster, "certificate-authority")
    return trust


def _credentials(choice: Choice, trust: Trust | None) -> CredentialSource:
    """As in client-go, a certificate or a token goes before an exec plugin."""
    user = choice.user
    entry, headers = user.entry, _impersonation(user.entry)
    _refuse_unsupported(user)
    certificate = _certificate(user)
    if entry.exec is not None and certificate is None and not (entry.token or entry.token_file):
        return ExecPlugin(_command(choice, entry.exec), trust, headers)
    tls = _context(trust, certificate, user, "client-certificate") if trust else None
    if entry.token_file:
        return TokenFile(user.path(entry.token_file), tls, headers, entry.token)
    return StaticCredential(Credential(with_token(headers, entry.token), tls))


def _refuse_unsupported(user: Placed[UserEntry]) -> None:
    if user.entry.username or user.entry.password:
        problem = "passwords are not supported, as Kubernetes itself has given them up; use a token"
        raise user.error("username" if user.entry.username else "password", problem)
    if user.entry.auth_provider:
        problem = "not supported, as Kubernetes itself has given it up; use an exec plugin"
        raise user.error("auth-provider", problem)


def _certificate(user: Placed[UserEntry]) -> Certificate | None:
    entry = user.entry
    chain = user.content(
        "client-certificate", entry.client_certificate, entry.client_certificate_data
    )
    key = user.content("client-key", entry.client_key, entry.client_key_data)
    if chain is None and key is None:
        return None
    if chain is None:
        raise user.error("client-certificate", "is missing, but there is a client-key")
    if key is None:
        raise user.error("client-key", "is missing, but there is a client-certificate")
    return Certificate(chain, key)


def _context(
    trust: Trust,
    certificate: Certificate | None,
    placed: Placed[ClusterEntry] | Placed[UserEntry],
    key: str,
) -> ssl.SSLContext:
    try:
        return trust.context(certificate)
    except ValueError as error:
        raise placed.error(key, str(error)) from None


def _impersonation(user: UserEntry) -> CIMultiDict[str]:
    """Impersonation headers; without them, requests would have the user's own rights."""
    headers: CIMultiDict[str] = CIMultiDict()
    if user.impersonate:
        headers["Impersonate-User"] = user.impersonate
    if user.impersonate_uid:
        headers["Impersonate-Uid"] = user.impersonate_uid
    for group in user.impersonate_groups or ():
        headers.add("Impersonate-Group", group)
    for name, values in (user.impersonate_extra or {}).items():
        for value in values:
            headers.add(f"Impersonate-Extra-{quote(name, safe='')}", value)
    return headers


def _command(choice: Choice, entry: ExecEntry) -> Command:
    user = choice.user
    if entry.api_version not in VERSIONS:
        raise user.error("exec.apiVersion", f"{' or '.join(VERSIONS)} is expected")
    if not entry.command:
        raise user.error("exec.command", "is missing")
    mode = entry.interactive_mode or "IfAvailable"
    if mode not in _INTERACTIVE:
        raise user.error("exec.interactiveMode", f"{', '.join(_INTERACTIVE)} are possible")
    is_path = os.sep in entry.command
    program = str(user.path(entry.command)) if is_path else entry.command
    return Command(
        entry.api_version or "",
        [program, *(entry.args or ())],
        {each.name: each.value for each in entry.env or ()},
        _cluster_info(choice.cluster) if entry.provide_cluster_info else None,
        entry.install_hint or "",
        mode != "Never",
    )


def _cluster_info(cluster: Placed[ClusterEntry]) -> dict[str, object]:
    """The cluster, as an exec plugin is given it (`spec.cluster` of an ExecCredential)."""
    entry = cluster.entry
    authority = cluster.content(
        "certificate-authority", entry.certificate_authority, entry.certificate_authority_data
    )
    config = [each.extension for each in entry.extensions or () if each.name == _EXTENSION]
    info: dict[str, object | None] = {
        "server": entry.server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode() if authority else None,
        "proxy-url": entry.proxy_url,
        "config": config[0] if config else None,
    }
    return {key: value for key, value in info.items() if value}
