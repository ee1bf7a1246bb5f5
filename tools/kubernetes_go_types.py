"""Writes anew what only the Go types of Kubernetes say: a maintainer's tool.

`python tools/kubernetes_go_types.py FOLDER...` reads the `types.go` of a release below these
folders, such as `staging/src/k8s.io/api`. It takes the package of a type and whether it is atomic;
of its fields, which are required, which are pointers, and which are written even if they are empty.
`aliquot.server.schema.go_types` has the form of the table.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_TYPES = _ROOT / "aliquot/dialects/schemas/kubernetes.json"
_TABLE = _ROOT / "aliquot/server/schema/go_types.json"
_STRUCT = re.compile(r"^type (\w+) struct \{$")
_FIELD = re.compile(r'^\s+(?:\w+\s+)?([^`\s]\S*)\s+`json:"([^"]*)"')
_ATOMIC = re.compile(r"^//\s*\+structType=atomic")
_OPTIONAL = re.compile(r"^\s*//\s*\+(optional|default=)")
_REQUIRED = re.compile(r"^\s*//\s*\+(required|kubebuilder:validation:Required)")
_DEFAULT = re.compile(r'^\s*//\s*\+default="([^"]*)"')

Fields = dict[str, tuple[str, list[str]]]
"""By name in JSON, the type in Go and the options of the tag."""


@dataclass
class Struct:
    """One struct: its fields by their names in JSON, and the structs that it embeds."""

    fields: Fields = field(default_factory=dict)
    embedded: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    atomic: bool = False


def main(folders: list[Path]) -> None:
    """Read the structs and write what is known of them."""
    known = json.loads(_TYPES.read_text())["types"]
    keys = {key for fields in known.values() for each in fields.values() for key in _keys(each)}
    table = {}
    for file in sorted(each for folder in folders for each in folder.rglob("types*.go")):
        group, version = file.parts[-3:-1]
        structs = dict(_structs(file))
        for name in structs:
            known_as = name if name in known else f"{group}.{version}.{name}"
            plain = not re.search("alpha|beta", version)
            if known_as in known and (plain or known_as != name):
                facts = _facts(structs, name, known[known_as], keys)
                table[known_as] = {"package": _package(file), **facts}
    lines = [f"{json.dumps(name)}: {json.dumps(table[name])}" for name in sorted(table)]
    _TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _package(file: Path) -> str:
    """The package of a file as OpenAPI writes it: `api.core.v1`."""
    return ".".join(file.parts[file.parts.index("k8s.io") + 1 : -1])


def _keys(written: str) -> list[str]:
    found = re.search(r"\bmap:(\S+)", written)
    return found[1].split(",") if found else []


def _structs(file: Path) -> Iterator[tuple[str, Struct]]:
    """The structs of a file."""
    now, default, atomic, marks = Struct(), None, False, ""
    for line in file.read_text().splitlines():
        if found := _STRUCT.match(line):
            now, atomic = Struct(atomic=atomic), False
            yield found[1], now
        elif _ATOMIC.match(line):
            atomic = True
        elif line.startswith(("type ", "func ", "const ")):
            atomic = False
        elif found := _DEFAULT.match(line):
            default = found[1]
        elif found := _FIELD.match(line):
            name, *options = found[2].split(",")
            if name:
                now.fields[name] = (found[1], options)
                if "O" not in marks and ("R" in marks or "omitempty" not in options):
                    now.required.add(name)
                now.defaults |= {} if default is None else {name: default}
            else:
                now.embedded.append(found[1].rpartition(".")[2])
            default, marks = None, ""
        elif line.strip() and not line.strip().startswith("//"):
            marks = ""
        if _OPTIONAL.match(line):
            marks += "O"
        elif _REQUIRED.match(line):
            marks += "R"


def _facts(
    structs: dict[str, Struct], name: str, types: dict[str, str], keys: set[str]
) -> dict[str, object]:
    """Of one type: pointers, fields that are always written, and the defaults of merge keys."""
    found: dict[str, object] = {"atomic": True} if structs[name].atomic else {}
    fields, defaults, required = _flat(structs, name)
    pointers = [each for each, (go, _) in fields.items() if go.startswith("*") and each in types]
    always = [each for each in fields if each in types and _always(fields[each], types[each])]
    known = {each: value for each, value in defaults.items() if each in keys and each in types}
    needed = [each for each in fields if each in types and each in required]
    for word, values in (("always", always), ("pointers", pointers), ("required", needed)):
        found |= {word: " ".join(values)} if values else {}
    return found | ({"defaults": known} if known else {})


def _flat(structs: dict[str, Struct], name: str) -> tuple[Fields, dict[str, str], set[str]]:
    own = structs.get(name, Struct())
    fields, defaults, required = dict(own.fields), dict(own.defaults), set(own.required)
    for each in own.embedded:
        more, more_defaults, more_required = _flat(structs, each)
        fields, defaults = more | fields, more_defaults | defaults
        required |= more_required
    return fields, defaults, required


def _always(about: tuple[str, list[str]], written: str) -> bool:
    """Is a field written even if it is empty? A struct is, unless it is a pointer."""
    go, options = about
    if "omitzero" in options:
        return False
    if "omitempty" not in options:
        return True
    kind = written.split(" ")[0]
    struct = kind[0].isupper() or "." in kind or kind in ("time", "quantity", "int-or-string")
    return struct and not go.startswith(("*", "[]", "map["))


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
