"""Kubeconfig files: read, merged as kubectl merges them, and one context chosen.

Where several files name the same thing, the first one counts. Every entry remembers its file: paths
in it are relative to that, and whatever is wrong with it is reported with it. A value is never
quoted in a refusal, since any of them may be a secret.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from aliquot.dialects.core import documents
from aliquot.dialects.core.manifest import convert
from aliquot.dialects.core.objects import Wire
from aliquot.errors import InputError


class Extension(Wire):
    """What others keep in an entry."""

    name: str = ""
    extension: Any = None


class ClusterEntry(Wire, rename="kebab"):
    """Where a server is, and how it is recognised."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(Wire):
    """Of a plugin's environment."""

    name: str = ""
    value: str = ""


class ExecEntry(Wire):
    """A program that gives out credentials."""

    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class UserEntry(Wire, rename="kebab"):
    """Who one is to a server."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    auth_provider: Any = None
    exec: ExecEntry | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(
        default=None, name="as-user-extra"
    )


class ContextEntry(Wire, rename="kebab"):
    """Which cluster, as which user."""

    cluster: str | None = None
    user: str | None = None


class _NamedCluster(Wire):
    name: str = ""
    cluster: ClusterEntry | None = None


class _NamedUser(Wire):
    name: str = ""
    user: UserEntry | None = None


class _NamedContext(Wire):
    name: str = ""
    context: ContextEntry | None = None


class _File(Wire, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Placed(Generic[Entry]):
    """An entry, and where it was written."""

    file: Path
    field: str
    entry: Entry

    def error(self, key: str, problem: str) -> InputError:
        """A refusal of one of its fields."""
        return InputError(str(self.file), f"{self.field}.{key}" if key else self.field, problem)

    def path(self, given: str) -> Path:
        """A path that stands in it."""
        return self.file.parent / given

    def content(self, key: str, file: str | None, data: str | None) -> bytes | None:
        """What stands in it as data, or in a file that it names; data counts first."""
        if data:
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError):
                raise self.error(f"{key}-data", "not base64") from None
        if not file:
            return None
        try:
            return self.path(file).read_bytes()
        except OSError as error:
            raise self.error(key, f"{file}: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """The cluster and the user of a context."""

    cluster: Placed[ClusterEntry]
    user: Placed[UserEntry]


def choose(files: Sequence[Path], context: str | None = None) -> Choice:
    """The current context of these files together, or the one that is named."""
    place = ":".join(map(str, files))
    read = [(file, _read(file)) for file in files]
    chosen = context or next((said.current_context for _, said in read if said.current_context), "")
    if not chosen:
        raise InputError(place, "current-context", "is missing; name a context")
    said = _find(read, "contexts", chosen, place).entry.context
    if said is None or not said.cluster:
        raise InputError(place, f"contexts[{chosen}].context", "names no cluster")
    cluster = _find(read, "clusters", said.cluster, place)
    where = Placed(
        cluster.file, f"{cluster.field}.cluster", cluster.entry.cluster or ClusterEntry()
    )
    if not said.user:
        return Choice(where, Placed(files[0], "users", UserEntry()))
    user = _find(read, "users", said.user, place)
    return Choice(where, Placed(user.file, f"{user.field}.user", user.entry.user or UserEntry()))


def _find(read: Iterable[tuple[Path, _File]], what: str, name: str, place: str) -> Placed[Any]:
    known: list[str] = []
    for file, said in read:
        for each in getattr(said, what) or ():
            if each.name == name:
                return Placed(file, f"{what}[{name}]", each)
            known.append(each.name)
    there = f"there are {', '.join(known)}" if known else "there are none"
    raise InputError(place, what, f"no {name!r}; {there}")


def _read(file: Path) -> _File:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError:
        raise InputError(str(file), "", "not text") from None
    bodies = [body for body in documents.values(text, str(file)) if body is not None]
    if len(bodies) > 1:
        raise InputError(str(file), "", f"one document is expected, there are {len(bodies)}")
    return convert(bodies[0], _File, str(file)) if bodies else _File()
