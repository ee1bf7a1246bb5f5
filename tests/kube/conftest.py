"""Conditions and nominations are written at once here, not after a moment; some tests set one."""

import pytest

from aliquot.kube.execution import pod_status


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_status, "MOMENT", 0.0)
