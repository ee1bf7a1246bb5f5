"""The Helm chart says what `aliquot manifests` says: checked by Helm itself where there is one."""

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from aliquot.json import Body
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import Installation

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "aliquot"
KEPT = "helm.sh/resource-policy"
needs_helm = pytest.mark.skipif(
    shutil.which("helm") is None, reason="NOT run: there is no helm on the PATH"
)


def test_the_chart_is_not_out_of_date() -> None:
    check = [sys.executable, str(ROOT / "tools" / "chart.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    command = ["helm", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def rendered(*words: str) -> dict[tuple[str, str], Body]:
    said = ["--namespace", "aliquot-system", "--kube-version", "1.32.0", *words]
    done = helm("template", "aliquot", "charts/aliquot", *said)
    assert done.returncode == 0, done.stderr
    return by_name(each for each in yaml.safe_load_all(done.stdout) if each)


def by_name(bodies: Iterable[Body]) -> dict[tuple[str, str], Body]:
    return {(each["kind"], each["metadata"]["name"]): each for each in bodies}


def printed(installation: Installation) -> dict[tuple[str, str], Body]:
    """Without the namespace, which Helm makes; the configuration as what it says."""
    return by_name(each for each in objects(installation) if each["kind"] != "Namespace")


def same(charted: dict[tuple[str, str], Body], installation: Installation) -> None:
    expected = printed(installation)
    assert set(charted) == set(expected)
    for key, body in charted.items():
        if body["kind"] == "CustomResourceDefinition":
            assert body["metadata"]["annotations"].pop(KEPT) == "keep"
            if not body["metadata"]["annotations"]:
                del body["metadata"]["annotations"]
        for each in (body, expected[key]):
            if each["kind"] == "ConfigMap":
                each["data"] = {name: yaml.safe_load(text) for name, text in each["data"].items()}
        assert body == expected[key], key


def test_monitoring_is_off_and_what_the_command_prints_when_it_is_on() -> None:
    """Without Helm: its few actions in this part are plain enough to be filled in here."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    switches = [values["metrics"][each] for each in ("serviceMonitor", "rules", "dashboard")]
    assert [each["enabled"] for each in switches] == [False] * 3
    text = (CHART / "templates" / "monitoring.yaml").read_text()
    text = re.sub(r"^ *\{\{- with .*?\{\{- end }}\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ +\{\{- if .*?\{\{- end }}\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\{\{- .*}}\n", "", text, flags=re.MULTILINE)
    found = yaml.safe_load_all(re.sub(r"\{\{ ?(.*?) ?}}", lambda at: _filled(at[1], values), text))
    assert by_name(found) == by_name(
        each for each in objects(Installation(), ["monitoring"]) if each["kind"] != "Namespace"
    )


def _filled(action: str, values: Body) -> str:
    """What an action of a template becomes."""
    if action == ".Release.Namespace":
        return "aliquot-system"
    if action == "`{{`":
        return "{{"
    if found := re.fullmatch(r'\.Files\.Get "(.*)" \| indent 4', action):
        return textwrap.indent((CHART / found[1]).read_text(), " " * 4)
    found = re.fullmatch(r"\.Values\.([\w.]+)(?: \| quote)?", action)
    if found is None:  # of Prometheus, in an annotation of an alert
        return f"{{{{ {action} }}}}"
    for step in found[1].split("."):
        values = values[step]
    return str(values)


@needs_helm
def test_monitoring_comes_with_its_values() -> None:
    words = [f"metrics.{each}.enabled=true" for each in ("serviceMonitor", "rules", "dashboard")]
    found = rendered("--set", ",".join([*words, "metrics.rules.labels.release=prometheus"]))
    expected = by_name(objects(Installation(), ["monitoring"]))
    for key in (("ServiceMonitor", "aliquot"), ("ConfigMap", "aliquot-dashboard")):
        assert found[key] == expected[key]
    for name in ("aliquot", "aliquot-webhook"):
        rule = found["PrometheusRule", name]
        assert rule["metadata"]["labels"].pop("release") == "prometheus"
        assert rule == expected["PrometheusRule", name]
    changed = rendered("--set", f"{words[1]},metrics.rules.borrowed=40,webhook.enabled=false")
    assert "> 40" in str(changed["PrometheusRule", "aliquot"])
    assert ("PrometheusRule", "aliquot-webhook") not in changed


@needs_helm
def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", "--strict", "charts/aliquot")
    assert done.returncode == 0, done.stdout


@needs_helm
def test_the_chart_gives_what_the_command_prints() -> None:
    same(rendered(), Installation())


@needs_helm
def test_values_do_what_flags_do() -> None:
    words = ["--set", "image.repository=example/b,image.tag=c,webhook.enabled=false"]
    words += ["--set", "scheduler.replicas=5,config.capacity.borrow=freeCapacity"]
    knobs = {**Installation().configuration, "capacity": {"borrow": "freeCapacity"}}
    same(rendered(*words), Installation("aliquot-system", "example/b:c", 5, knobs, webhook=False))


@needs_helm
def test_what_only_the_chart_can_do() -> None:
    words = ["--set", "crds.except={queues.scheduling.volcano.sh}"]
    words += ["--set", "scheduler.extraArgs={--dry-run,--policy=fair}"]
    words += ["--set", "scheduler.nodeSelector.pool=system,imagePullSecrets[0].name=pull"]
    words += ["--set", "scheduler.serviceAccount.name=mine,scheduler.serviceAccount.create=false"]
    words += ["--set", "metrics.serviceMonitor.enabled=true"]
    found = rendered(*words)
    definitions = {name for kind, name in found if kind == "CustomResourceDefinition"}
    every = {name for kind, name in printed(Installation()) if kind == "CustomResourceDefinition"}
    assert every - definitions == {"queues.scheduling.volcano.sh"}
    pod = found["Deployment", "aliquot-scheduler"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-2:] == ["--dry-run", "--policy=fair"]
    assert pod["nodeSelector"] == {"pool": "system"}
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["serviceAccountName"] == "mine"
    assert {name for kind, name in found if kind == "ServiceAccount"} == {"aliquot-webhook"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert found[kind, "aliquot-scheduler"]["subjects"][0]["name"] == "mine"
    assert found["ServiceMonitor", "aliquot"]["spec"]["endpoints"][0]["port"] == "metrics"
    without = rendered("--set", "crds.install=false")
    assert not [kind for kind, _ in without if kind == "CustomResourceDefinition"]


@needs_helm
@pytest.mark.parametrize(
    "value", ["scheduler.replicas=0", "scheduler.replica=3", "config.kind=Other", "colour=red"]
)
def test_values_that_mean_nothing_are_refused(value: str) -> None:
    done = helm("template", "charts/aliquot", "--kube-version", "1.32.0", "--set", value)
    assert done.returncode == 1
    assert value.split("=")[0].split(".")[-1] in done.stderr
