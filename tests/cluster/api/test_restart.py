"""A server that ends and begins again has kept everything, and goes on counting.

These servers are the tests' own: nobody else's may be ended.
"""

from tests.cluster.api.objects import GADGETS, config_map, path, path_of, pod, thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Start, established


def test_everything_is_kept_but_the_past(start: Start) -> None:
    with start() as server:
        api = Wire(server.kubeconfig)
        api.made(GADGETS)
        eventually(lambda: established(api, GADGETS))
        kept = [
            api.made(config_map("default", "a")),
            api.made(pod("default", "p")),
            api.made(thing("Gadget", "", "g", spec={"x": 1})),
        ]
        gone = api.made(config_map("default", "b"))
        listed = api.get(path("ConfigMap", "default"), limit=1).done()["metadata"]
        api.delete(path_of(gone)).done()
        last = api.made(config_map("default", "c"))["metadata"]["resourceVersion"]
    with start() as server:
        api = Wire(server.kubeconfig)
        eventually(lambda: api.get("/apis/suite.aliquot.dev/v1/gadgets").code == 200)
        assert [api.again(body) for body in kept] == kept
        assert api.gone(gone)
        newer = api.made(config_map("default", "d"))["metadata"]["resourceVersion"]
        assert int(newer) > int(last)
        old = kept[0]["metadata"]["resourceVersion"]
        with api.watch(path("ConfigMap", "default"), resourceVersion=old) as stream:
            event = stream.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version")
        query = {"limit": 1, "continue": listed["continue"]}
        api.get(path("ConfigMap", "default"), **query).refused(410, "Expired")
        exact = {"resourceVersion": old, "resourceVersionMatch": "Exact"}
        api.get(path("ConfigMap", "default"), **exact).refused(410, "Expired")
