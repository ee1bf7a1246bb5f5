"""Which quotas are above min is looked up at once: the decisions are those of looking at each."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot import simulate
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.over_quota import Rows
from tests.campaign import examples
from tests.properties.manifests import cluster

RECLAIM = "capacity", "fair", "hierarchy"
"""The policies that reclaim for min."""


def _each(borrowers: reclaim_rules._Borrowers, rows: Rows) -> list[int]:
    return borrowers.state.bound_pods.quotas()


@settings(
    max_examples=examples(400, 40), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rng=st.randoms(use_true_random=False), policy=st.sampled_from(RECLAIM))
def test_quotas_above_min_are_those_found_one_by_one(
    rng: Random, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = cluster(rng, policy)
    found = simulate(objects, policy)
    with monkeypatch.context() as patched:
        patched.setattr(reclaim_rules._Borrowers, "_candidates", _each)
        assert simulate(objects, policy) == found
