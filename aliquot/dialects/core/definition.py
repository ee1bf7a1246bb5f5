"""A CustomResourceDefinition as a value, and what all of ours have in common.

Each has one version, a status subresource, short names, the category `aliquot` (so that
`kubectl get aliquot` shows all of them), and its age as the last column that is always shown.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from aliquot.dialects.core.schema import Schema, record, text
from aliquot.json import Body

Column = tuple[str, str, str]
"""Name, type and JSON path of a column that kubectl prints."""

AGE: Column = ("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class Definition:
    """A custom kind: its names, its schema and its printed columns."""

    group: str
    version: str
    kind: str
    plural: str
    about: str
    spec: Schema
    status: Schema
    columns: Sequence[Column]
    short_names: Sequence[str] = ()
    wide: Sequence[Column] = ()
    """Shown with `-o wide` only."""
    namespaced: bool = True
    annotations: dict[str, str] = field(default_factory=dict)

    def body(self) -> Body:
        """The CustomResourceDefinition object, built anew at every call."""
        metadata: Body = {"name": f"{self.plural}.{self.group}"}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "group": self.group,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    **({"shortNames": list(self.short_names)} if self.short_names else {}),
                    "categories": ["aliquot"],
                },
                "versions": [self._version()],
            },
        }

    def _version(self) -> Body:
        return {
            "name": self.version,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [
                *_printer_columns((*self.columns, AGE)),
                *_printer_columns(self.wide, priority=1),
            ],
            "schema": {"openAPIV3Schema": deepcopy(self._schema())},
        }

    def _schema(self) -> Schema:
        parts = {
            "apiVersion": text("The group and version of this shape of the object."),
            "kind": text("The kind of the object."),
            "metadata": {"type": "object"},
            "spec": self.spec,
            "status": self.status,
        }
        return record(parts, description=self.about)


def _printer_columns(columns: Iterable[Column], priority: int = 0) -> list[Body]:
    more = {"priority": priority} if priority else {}
    return [{"name": name, "type": kind, "jsonPath": path, **more} for name, kind, path in columns]
