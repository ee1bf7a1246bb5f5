"""The servers that the suite asks, as the package starts them; and what only a suite does."""

import urllib3

from aliquot.bench.envtest import Server, Store, embedded, etcd, real

__all__ = ["Server", "Store", "compact", "embedded", "etcd", "real"]


def compact(store: Store) -> None:
    """Make the real server forget: all that etcd kept of older versions goes."""
    at = urllib3.request("POST", f"{store.url}/v3/kv/range", json={"key": "AA=="}).json()
    body = {"revision": at["header"]["revision"]}
    answer = urllib3.request("POST", f"{store.url}/v3/kv/compaction", json=body)
    assert answer.status == 200, answer.data
