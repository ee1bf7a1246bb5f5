"""The key `systemNamespaces` of the configuration."""

from typing import Any

import pytest

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration, with_own_namespace
from aliquot.dialects.core.documents import Document
from aliquot.errors import InputError


def read(written: Any) -> Configuration:
    about = {"apiVersion": configuration.API_VERSION, "kind": "Configuration"}
    return configuration.read(Document("test", {**about, "systemNamespaces": written}))


def test_they_reach_the_engine_beside_kube_system() -> None:
    assert configuration.knobs(Configuration()).system_namespaces.names == {"kube-system"}
    found = configuration.knobs(read(["infra", "kube-system"])).system_namespaces
    assert found.names == {"infra", "kube-system"}


@pytest.mark.parametrize(
    ("written", "field"),
    [
        (["infra", "Infra"], "systemNamespaces[1]"),
        (["a.b"], "systemNamespaces[0]"),
        ([""], "systemNamespaces[0]"),
        ("infra", "systemNamespaces"),
        ([1], "systemNamespaces[0]"),
        ({"infra": True}, "systemNamespaces"),
    ],
)
def test_what_is_no_list_of_namespaces_is_refused(written: Any, field: str) -> None:
    with pytest.raises(InputError) as refused:
        read(written)
    assert refused.value.field == field


def test_aliquots_own_namespace_is_one_of_them_on_a_cluster() -> None:
    own = with_own_namespace(read(["infra"]), "aliquot-system")
    assert own.system_namespaces == ["infra", "aliquot-system"]
    assert with_own_namespace(own, "infra").system_namespaces == own.system_namespaces
