"""Kubeconfig files: read, merged as kubectl merges them, and one context chosen.

Where several files have an entry of one name, the first file counts. Every entry remembers its
file: relative paths in it start there, and errors name it. A value must never be quoted in an
error, since any of them may be a secret.
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
    """A named value that a tool keeps in a cluster entry."""

    name: str = ""
    extension: Any = None


class ClusterEntry(Wire, rename="kebab"):
    """A server's address, and which certificate it must show."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(Wire):
    """A variable of an exec plugin's environment."""

    name: str = ""
    value: str = ""


class ExecEntry(Wire):
    """An exec plugin."""

    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class UserEntry(Wire, rename="kebab"):
    """The credentials of a user."""

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
    """A cluster, and the user to authenticate as."""

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
    """An entry, with the file and the field it stands in."""

    file: Path
    field: str
    entry: Entry

    def error(self, key: str, problem: str) -> InputError:
        """The error that refuses one field of the entry."""
        return InputError(str(self.file), f"{self.field}.{key}" if key else self.field, problem)

    def path(self, given: str) -> Path:
        """A path in the entry; relative ones start at the file's folder."""
        return self.file.parent / given

    def content(self, key: str, file: str | None, data: str | None) -> bytes | None:
        """The content given inline as base64 data, else that of the file that is named."""
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
    chosen = context or next((each.current_context for _, each in read if each.current_context), "")
    if not chosen:
        raise InputError(place, "current-context", "is missing; name a context")
    entry = _find(read, "contexts", chosen, place).entry.context
    if entry is None or not entry.cluster:
        raise InputError(place, f"contexts[{chosen}].context", "names no cluster")
    cluster = _find(read, "clusters", entry.cluster, place)
    where = Placed(
        cluster.file, f"{cluster.field}.cluster", cluster.entry.cluster or ClusterEntry()
    )
    if not entry.user:
        return Choice(where, Placed(files[0], "users", UserEntry()))
    user = _find(read, "users", entry.user, place)
    return Choice(where, Placed(user.file, f"{user.field}.user", user.entry.user or UserEntry()))


def _find(read: Iterable[tuple[Path, _File]], what: str, name: str, place: str) -> Placed[Any]:
    known: list[str] = []
    for file, content in read:
        for each in getattr(content, what) or ():
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
