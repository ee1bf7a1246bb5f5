"""Tests that share a server run in one worker, all others in any."""

import pytest

from tests.distribution import shared_by


@pytest.mark.parametrize(
    ("test", "shared"),
    [
        ("cluster/api/test_scale.py::test_it_is_read[real-Deployment]", "real server"),
        ("cluster/kube/test_webhook.py::test_a_dry_run[real]", "real server"),
        ("cluster/kube/test_webhook.py::test_a_dry_run[embedded]", "embedded webhook"),
        ("cluster/plane/test_nos.py::test_labels[real]", "real cluster"),
        ("cluster/plane/test_crash.py::test_any_write_to_a_real_server[gang]", "real cluster"),
        ("cluster/install/test_rights.py::test_who_may_do_what[case2-True]", "installed"),
        ("layers/test_contracts.py::test_it_is_kept", "tests/layers/test_contracts.py"),
        ("cluster/plane/test_nos.py::test_labels[embedded]", None),
        ("cluster/api/test_scale.py::test_it_is_read[embedded-Deployment]", None),
        ("engine/test_queues.py::test_realm[really]", None),
    ],
)
def test_what_a_test_shares(test: str, shared: str | None) -> None:
    assert shared_by(f"tests/{test}") == shared
