"""Access: which API server we speak to, and how it knows who we are.

It is looked for where kubectl looks, and inside a cluster where its service account is. Whatever is
wrong with what is found is an `InputError` that names file and field; a way of proving who one is
that we do not have is refused, never left out. Nothing here sends anything.
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
from aliquot.kube.api.credential import Constant, Credential, Proof, TokenFile, with_token
from aliquot.kube.api.exec_plugin import VERSIONS, Command, ExecPlugin
from aliquot.kube.api.kubeconfig import Choice, ClusterEntry, ExecEntry, Placed, UserEntry
from aliquot.kube.api.tls import Certificate, Trust

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXTENSION = "client.authentication.k8s.io/exec"
_INTERACTIVE = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and the way to it."""

    url: str
    proof: Proof
    server_name: str | None = None
    """The name its certificate must have, if it is not that of the address."""
    proxy: str | None = None


def find(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """The server to speak to: that of a file, of KUBECONFIG, of the cluster we are in, of home."""
    if kubeconfig is not None:
        return _of(files.choose([kubeconfig], context))
    if listed := os.environ.get("KUBECONFIG"):
        there = [Path(each) for each in listed.split(os.pathsep) if each and Path(each).exists()]
        if not there:
            raise InputError("KUBECONFIG", "", f"{listed}: no such file")
        return _of(files.choose(there, context))
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST") and _ACCOUNT.is_dir():
        return _inside()
    home = Path(os.path.expanduser("~/.kube/config"))
    if not home.exists():
        problem = f"no {home}, KUBECONFIG is not set, and this is not a pod; name a kubeconfig"
        raise InputError("kubeconfig", "", problem)
    return _of(files.choose([home], context))


def _inside() -> Access:
    """As a pod of the cluster, by its service account."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT")
    url = f"https://{f'[{host}]' if ':' in host else host}:{port or 443}"
    authority = _ACCOUNT / "ca.crt"
    try:
        tls = Trust(authority.read_bytes()).context()
    except (OSError, ValueError) as error:
        raise InputError(str(authority), "", str(error)) from None
    through = proxy.from_environment(url, os.environ)
    return Access(url, TokenFile(_ACCOUNT / "token", tls, CIMultiDict()), proxy=through)


def _of(choice: Choice) -> Access:
    """As a kubeconfig says."""
    cluster = choice.cluster.entry
    url = _url(choice.cluster)
    trust = _trust(choice.cluster) if url.startswith("https:") else None
    if cluster.proxy_url:
        place, field = str(choice.cluster.file), f"{choice.cluster.field}.proxy-url"
        through: str | None = proxy.checked(cluster.proxy_url, place, field)
    else:
        through = proxy.from_environment(url, os.environ)
    return Access(url, _proof(choice, trust), cluster.tls_server_name or None, through)


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
    said = cluster.entry
    authority = cluster.content(
        "certificate-authority", said.certificate_authority, said.certificate_authority_data
    )
    anybody = bool(said.insecure_skip_tls_verify)
    if anybody and authority is not None:
        raise cluster.error("insecure-skip-tls-verify", "contradicts certificate-authority")
    trust = Trust(authority, anybody)
    _context(trust, None, cluster, "certificate-authority")
    return trust


def _proof(choice: Choice, trust: Trust | None) -> Proof:
    user = choice.user
    said, others = user.entry, _impersonation(user.entry)
    _refuse_unsupported(user)
    certificate = _certificate(user)
    if said.exec is not None and certificate is None and not (said.token or said.token_file):
        return ExecPlugin(_command(choice, said.exec), trust, others)
    tls = _context(trust, certificate, user, "client-certificate") if trust else None
    if said.token_file:
        return TokenFile(user.path(said.token_file), tls, others, said.token)
    return Constant(Credential(with_token(others, said.token), tls))


def _refuse_unsupported(user: Placed[UserEntry]) -> None:
    if user.entry.username or user.entry.password:
        problem = "passwords are not supported, as Kubernetes itself has given them up; use a token"
        raise user.error("username" if user.entry.username else "password", problem)
    if user.entry.auth_provider:
        problem = "not supported, as Kubernetes itself has given it up; use an exec plugin"
        raise user.error("auth-provider", problem)


def _certificate(user: Placed[UserEntry]) -> Certificate | None:
    said = user.entry
    chain = user.content(
        "client-certificate", said.client_certificate, said.client_certificate_data
    )
    key = user.content("client-key", said.client_key, said.client_key_data)
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
    """Headers that ask to be taken for somebody else; left out, we would have other rights."""
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


def _command(choice: Choice, said: ExecEntry) -> Command:
    user = choice.user
    if said.api_version not in VERSIONS:
        raise user.error("exec.apiVersion", f"{' or '.join(VERSIONS)} is expected")
    if not said.command:
        raise user.error("exec.command", "is missing")
    mode = said.interactive_mode or "IfAvailable"
    if mode not in _INTERACTIVE:
        raise user.error("exec.interactiveMode", f"{', '.join(_INTERACTIVE)} are possible")
    named = os.sep in said.command
    program = str(user.path(said.command)) if named else said.command
    return Command(
        said.api_version or "",
        [program, *(said.args or ())],
        {each.name: each.value for each in said.env or ()},
        _about(choice.cluster) if said.provide_cluster_info else None,
        said.install_hint or "",
        mode != "Never",
    )


def _about(cluster: Placed[ClusterEntry]) -> dict[str, object]:
    """The cluster, as plugins are told of it."""
    said = cluster.entry
    authority = cluster.content(
        "certificate-authority", said.certificate_authority, said.certificate_authority_data
    )
    config = [each.extension for each in said.extensions or () if each.name == _EXTENSION]
    about: dict[str, object | None] = {
        "server": said.server,
        "tls-server-name": said.tls_server_name,
        "insecure-skip-tls-verify": said.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode() if authority else None,
        "proxy-url": said.proxy_url,
        "config": config[0] if config else None,
    }
    return {key: value for key, value in about.items() if value}
