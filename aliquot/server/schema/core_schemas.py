"""The schemas of Kubernetes' own kinds: typed where Aliquot or its users rely on it, else open.

They serve three purposes: requests are checked against them before any rule runs, so that rules
can rely on types; strategic merge patches read from them how lists are merged; and clients get
them as OpenAPI. A field that is not in a schema is kept as it is.
"""

from aliquot.dialects.core.schema import (
    QUANTITY_PATTERN,
    Schema,
    anything,
    conditions,
    flag,
    listed,
    long,
    mapped,
    moment,
    number_or_text,
    open_ended,
    quantities,
    record,
    text,
    whole,
)
from aliquot.server.schema.message_schemas import KINDS, kind_schema
from aliquot.server.schema.pod_schema import POD_SPEC, POD_STATUS
from aliquot.server.schema.shared_shapes import METADATA, SELECTOR, merged

_WORDS = mapped(text())


def schema(kind: str) -> Schema | None:
    """The schema of a kind by its unique name; None if there is none."""
    return _AS_READ.get(kind)


def _as_read(shape: Schema) -> Schema:
    """The schema as requests are read: null counts as absent, quantities may be numbers."""
    if shape.get("pattern") == QUANTITY_PATTERN:
        either = {"oneOf": [{"type": "string"}, {"type": "number"}], "pattern": QUANTITY_PATTERN}
        return {"description": shape.get("description", ""), "nullable": True, **either}
    read = {**shape, "nullable": True}
    if "properties" in shape:
        inner = shape["properties"].items()
        read["properties"] = {name: _as_read(each) for name, each in inner}
    if "additionalProperties" in shape:
        read["additionalProperties"] = _as_read(shape["additionalProperties"])
    if "items" in shape:
        read["items"] = {**_as_read(shape["items"]), "nullable": False}
    return read


def _kind(about: str, /, **parts: Schema) -> Schema:
    """The schema of a kind: its own fields beside those of every object."""
    shape = {
        "apiVersion": text("The group and version of this shape of the object."),
        "kind": text("The kind of the object."),
        "metadata": METADATA,
        **parts,
    }
    return open_ended(record(shape, description=about))


def _part(about: str = "", /, **parts: Schema) -> Schema:
    return open_ended(record(parts, description=about))


_REFERENCE = _part(
    "The object.",
    apiVersion=text(),
    kind=text(),
    namespace=text(),
    name=text(),
    uid=text(),
    resourceVersion=text(),
    fieldPath=text(),
)
_CONDITIONS = merged(conditions(), "type")
_TEMPLATE = _part("What its pods look like.", metadata=METADATA, spec=POD_SPEC)
_RULE = open_ended(
    record(
        {
            "operations": listed(text()),
            "apiGroups": listed(text()),
            "apiVersions": listed(text()),
            "resources": listed(text()),
            "scope": text(),
        }
    )
)
_WEBHOOKS = merged(
    listed(
        _part(
            name=text("A full name, such as quotas.example.com."),
            clientConfig=_part(
                "Where to ask.",
                url=text(),
                caBundle=text(),
                service=_part(name=text(), namespace=text(), path=text(), port=whole()),
            ),
            rules=listed(_RULE, "About what to ask."),
            failurePolicy=text("What no answer means: Fail or Ignore."),
            matchPolicy=text("Exact or Equivalent."),
            namespaceSelector=SELECTOR,
            objectSelector=SELECTOR,
            sideEffects=text("None, NoneOnDryRun, Some or Unknown."),
            timeoutSeconds=whole("How long to wait for an answer."),
            admissionReviewVersions=listed(text(), "Which forms of the question it understands."),
            reinvocationPolicy=text("Never or IfNeeded."),
        )
    ),
    "name",
)

_SCHEMAS: dict[str, Schema] = {
    "ConfigMap": _kind(
        "Settings for pods to read.",
        data=_WORDS,
        binaryData=_WORDS,
        immutable=flag("Never to be changed."),
    ),
    "CustomResourceDefinition": _kind(
        "A kind that Kubernetes does not have by itself.",
        spec=_part(
            "What the kind is.",
            group=text("Its group."),
            scope=text("Namespaced or Cluster."),
            names=_part(
                "What it is called.",
                plural=text(),
                singular=text(),
                kind=text(),
                listKind=text(),
                shortNames=listed(text()),
                categories=listed(text()),
            ),
            versions=listed(
                _part(
                    name=text(),
                    served=flag(),
                    storage=flag(),
                    schema=anything(),
                    subresources=anything(),
                    additionalPrinterColumns=listed(anything()),
                ),
                "Its versions.",
            ),
            conversion=anything("How one version becomes another."),
            preserveUnknownFields=flag(),
        ),
        status=_part(
            "Whether it is served.",
            conditions=conditions(),
            acceptedNames=anything(),
            storedVersions=listed(text()),
        ),
    ),
    "Deployment": _kind(
        "Pods that are replaced, and brought up to date, by and by.",
        spec=_part(
            "What is wanted.",
            replicas=whole("How many pods."),
            selector=SELECTOR,
            template=_TEMPLATE,
            strategy={
                **anything("How they are replaced."),
                "x-kubernetes-patch-strategy": "retainKeys",
            },
            minReadySeconds=whole(),
            revisionHistoryLimit=whole(),
            progressDeadlineSeconds=whole(),
            paused=flag("Whether changes wait."),
        ),
        status=_part(
            "What there is.",
            replicas=whole(),
            updatedReplicas=whole(),
            readyReplicas=whole(),
            availableReplicas=whole(),
            unavailableReplicas=whole(),
            observedGeneration=long(),
            conditions=_CONDITIONS,
        ),
    ),
    "Event": _kind(
        "Something that happened to an object.",
        involvedObject=_REFERENCE,
        regarding=_REFERENCE,
        reason=text("What happened, in one word."),
        message=text("What happened, in a sentence."),
        type=text("Normal or Warning."),
        count=whole("How often."),
        source=_part("Who says so.", component=text(), host=text()),
        firstTimestamp=moment(),
        lastTimestamp=moment(),
        eventTime=moment(),
        reportingComponent=text("Who says so."),
        reportingInstance=text(),
        action=text("What was done about it."),
        related=_REFERENCE,
        series=_part("How often it went on.", count=whole(), lastObservedTime=moment()),
    ),
    "Job": _kind(
        "Pods that run to their end.",
        spec=_part(
            "What is wanted.",
            parallelism=whole("How many pods at a time."),
            completions=whole("How many must succeed."),
            backoffLimit=whole("How many may fail."),
            activeDeadlineSeconds=long("How long it may take."),
            ttlSecondsAfterFinished=whole("How long it is kept when done."),
            completionMode=text("NonIndexed or Indexed."),
            suspend=flag("Whether it waits."),
            manualSelector=flag(),
            selector=SELECTOR,
            template=_TEMPLATE,
            podReplacementPolicy=text(),
            backoffLimitPerIndex=whole(),
            maxFailedIndexes=whole(),
            managedBy=text(),
        ),
        status=_part(
            "How far it is.",
            active=whole(),
            ready=whole(),
            succeeded=whole(),
            failed=whole(),
            terminating=whole(),
            startTime=moment(),
            completionTime=moment(),
            conditions=_CONDITIONS,
        ),
    ),
    "Lease": _kind(
        "Who does something that only one may do at a time.",
        spec=_part(
            "Who, since when and for how long.",
            holderIdentity=text(),
            leaseDurationSeconds=whole(),
            leaseTransitions=whole(),
            acquireTime=moment(),
            renewTime=moment(),
            strategy=text(),
            preferredHolder=text(),
        ),
    ),
    "LimitRange": _kind(
        "What each pod of a namespace may ask for.",
        spec=_part(limits=listed(anything())),
    ),
    "MutatingWebhookConfiguration": _kind(
        "Who may change what comes in.",
        webhooks=_WEBHOOKS,
    ),
    "Namespace": _kind(
        "A room of its own for a team's objects.",
        spec=_part(finalizers=listed(text())),
        status=_part(phase=text("Active or Terminating."), conditions=_CONDITIONS),
    ),
    "Node": _kind(
        "A machine that runs pods.",
        spec=_part(
            "What its keepers say of it.",
            unschedulable=flag("Whether no more pods may come."),
            taints=listed(
                _part(key=text(), value=text(), effect=text(), timeAdded=moment()),
                "What keeps pods away that do not tolerate it.",
            ),
            podCIDR=text(),
            podCIDRs=merged(listed(text())),
            providerID=text(),
        ),
        status=_part(
            "What it says of itself.",
            capacity=quantities("What it has."),
            allocatable=quantities("What pods may have of it."),
            phase=text(),
            conditions=_CONDITIONS,
            addresses=merged(listed(_part(type=text(), address=text())), "type"),
            nodeInfo=_part(
                "What it is made of.",
                architecture=text(),
                containerRuntimeVersion=text(),
                kernelVersion=text(),
                kubeletVersion=text(),
                operatingSystem=text(),
                osImage=text(),
            ),
            images=listed(anything()),
        ),
    ),
    "Pod": _kind("Containers that run together.", spec=POD_SPEC, status=POD_STATUS),
    "PodDisruptionBudget": _kind(
        "How many of some pods may be disturbed at a time.",
        spec=_part(
            "Which pods, and how many.",
            minAvailable=number_or_text("So many, or such a part, must be there."),
            maxUnavailable=number_or_text("So many, or such a part, may be missing."),
            selector=merged(SELECTOR, strategy="replace"),
            unhealthyPodEvictionPolicy=text("IfHealthyBudget or AlwaysAllow."),
        ),
        status=_part(
            "How many there are.",
            disruptionsAllowed=whole(),
            currentHealthy=whole(),
            desiredHealthy=whole(),
            expectedPods=whole(),
            observedGeneration=long(),
            disruptedPods=mapped(moment()),
            conditions=_CONDITIONS,
        ),
    ),
    "PodTemplate": _kind("What pods look like.", template=_TEMPLATE),
    "PriorityClass": _kind(
        "A name for a priority.",
        value=whole("The priority."),
        globalDefault=flag("Whether pods without a class have it."),
        description=text("When to use it."),
        preemptionPolicy=text("PreemptLowerPriority or Never."),
    ),
    "ReplicaSet": _kind(
        "Pods that are replaced when they go.",
        spec=_part(
            "What is wanted.",
            replicas=whole("How many pods."),
            minReadySeconds=whole(),
            selector=SELECTOR,
            template=_TEMPLATE,
        ),
        status=_part(
            "What there is.",
            replicas=whole(),
            fullyLabeledReplicas=whole(),
            readyReplicas=whole(),
            availableReplicas=whole(),
            observedGeneration=long(),
            conditions=_CONDITIONS,
        ),
    ),
    "ResourceQuota": _kind(
        "What a namespace may use, at most.",
        spec=_part(
            "The bounds.",
            hard=quantities("What may be used, by resource."),
            scopes=listed(text()),
            scopeSelector=anything(),
        ),
        status=_part("What is used.", hard=quantities(), used=quantities()),
    ),
    "Secret": _kind(
        "Settings for pods to read, and nobody else.",
        data=_WORDS,
        stringData=_WORDS,
        type=text("What it is for."),
        immutable=flag("Never to be changed."),
    ),
    "Service": _kind(
        "A name under which pods can be reached.",
        spec=_part(
            "Which pods, by which ports.",
            selector=_WORDS,
            type=text(),
            clusterIP=text(),
            ports=merged(
                listed(
                    _part(
                        name=text(),
                        port=whole(),
                        targetPort=number_or_text(),
                        protocol=text(),
                        nodePort=whole(),
                    )
                ),
                "port",
            ),
        ),
        status=_part(conditions=_CONDITIONS, loadBalancer=anything()),
    ),
    "ServiceAccount": _kind(
        "Who a pod is.",
        secrets=merged(listed(anything()), "name"),
        imagePullSecrets=listed(anything()),
        automountServiceAccountToken=flag(),
    ),
    "StatefulSet": _kind(
        "Pods that have a number, and keep it.",
        spec=_part(
            "What is wanted.",
            replicas=whole("How many pods."),
            selector=SELECTOR,
            template=_TEMPLATE,
            serviceName=text(),
            podManagementPolicy=text(),
            updateStrategy=anything(),
            volumeClaimTemplates=listed(anything()),
        ),
        status=_part("What there is.", replicas=whole(), conditions=_CONDITIONS),
    ),
    "ValidatingWebhookConfiguration": _kind(
        "Who may refuse what comes in.",
        webhooks=_WEBHOOKS,
    ),
    **{kind: kind_schema(kind) for kind in KINDS},
}
_AS_READ = {kind: {**_as_read(shape), "nullable": False} for kind, shape in _SCHEMAS.items()}
