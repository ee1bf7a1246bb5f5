"""The custom kinds of Volcano: Queue, PodGroup, Job and HyperNode."""

from aliquot.dialects.core.definition import Column, Definition
from aliquot.dialects.core.manifest import VOLCANO_GROUP, VOLCANO_JOBS, VOLCANO_TOPOLOGY
from aliquot.dialects.core.schema import (
    anything,
    choice,
    conditions,
    flag,
    listed,
    mapped,
    open_ended,
    quantities,
    record,
    text,
    whole,
)

_TOPOLOGY = record(
    {
        "mode": choice("hard", "soft", description="Must they be near, or should they?"),
        "highestTierAllowed": whole("The widest tier of which one HyperNode must hold them."),
        "highestTierName": text("The same by the name of the tier."),
    },
    description="How near to each other its pods run.",
)
_POLICIES = listed(
    record(
        {
            "action": text("What to do."),
            "event": text("What must happen."),
            "events": listed(text(), "What must happen: any of these."),
            "exitCode": whole("With which exit code a pod must end."),
            "timeout": text("How long to wait before it is done."),
        },
        description="What to do when one thing happens.",
    ),
    "What to do when something happens to a pod.",
)
_STATUS_COLUMNS: tuple[Column, ...] = (("RUNNINGS", "integer", ".status.running"),)

_QUEUE = Definition(
    group=VOLCANO_GROUP,
    version="v1beta1",
    kind="Queue",
    plural="queues",
    about="A share of the cluster, in which jobs wait their turn.",
    spec=record(
        {
            "weight": whole("Its say in sharing.", minimum=1, maximum=65535, default=1),
            "capability": quantities("What it may use at most."),
            "deserved": quantities("What it should have; it gives back what is beyond."),
            "guarantee": record(
                {"resource": quantities("What nobody else may use.")},
                description="What it is sure of.",
            ),
            "reclaimable": flag("Whether others may take back what it uses beyond its share."),
            "priority": whole("Which queue goes first.", minimum=0),
            "parent": text("The queue that it is a part of."),
            "dequeueStrategy": choice(
                "fifo", "traverse", description="Whether jobs may pass one that does not fit."
            ),
            "type": text("What it is for."),
            "affinity": anything("Which groups of nodes its pods run on."),
            "extendClusters": listed(anything(), "Other clusters that it spans."),
        },
        description="What the queue is.",
    ),
    status=open_ended(
        record(
            {
                "state": text("Open, Closed, Closing or Unknown."),
                "allocated": quantities("What its pods hold."),
                "deserved": quantities("What it should have now."),
                "pending": whole("How many groups wait."),
                "inqueue": whole("How many groups may start."),
                "running": whole("How many groups run."),
                "unknown": whole("How many groups run in part."),
                "completed": whole("How many groups have ended."),
                "reservation": anything("What is kept free for it."),
                "conditions": conditions(),
            },
            description="How the queue stands.",
        )
    ),
    columns=(
        ("Weight", "integer", ".spec.weight"),
        ("Deserved", "string", ".spec.deserved"),
        ("Used", "string", ".status.allocated"),
        ("State", "string", ".status.state"),
    ),
    wide=(
        ("Parent", "string", ".spec.parent"),
        ("Capability", "string", ".spec.capability"),
    ),
    short_names=("q", "queue-v1beta1"),
    namespaced=False,
)

_POD_GROUP = Definition(
    group=VOLCANO_GROUP,
    version="v1beta1",
    kind="PodGroup",
    plural="podgroups",
    about="Pods that start together, or not at all.",
    spec=record(
        {
            "minMember": whole("How many pods must start together."),
            "minTaskMember": mapped(whole(), "How many of each task."),
            "minResources": quantities("What they need together, at least."),
            "queue": text("The queue that it waits in.", default="default"),
            "priorityClassName": text("How important it is."),
            "networkTopology": _TOPOLOGY,
            "subGroupPolicy": listed(anything(), "Groups within the group."),
        },
        description="What the group is.",
    ),
    status=open_ended(
        record(
            {
                "phase": text("Pending, Inqueue, Running, Unknown or Completed."),
                "running": whole("How many pods run."),
                "succeeded": whole("How many pods have succeeded."),
                "failed": whole("How many pods have failed."),
                "conditions": conditions(),
            },
            description="How the group stands.",
        )
    ),
    columns=(
        ("STATUS", "string", ".status.phase"),
        ("minMember", "integer", ".spec.minMember"),
        *_STATUS_COLUMNS,
    ),
    wide=(("QUEUE", "string", ".spec.queue"),),
    short_names=("vcpg", "podgroup-v1beta1"),
)

_TASK = record(
    {
        "name": text("The name of the task."),
        "replicas": whole("How many pods it has.", minimum=0, default=1),
        "minAvailable": whole("How many of them must start together.", minimum=0),
        "template": anything("What its pods look like."),
        "policies": _POLICIES,
        "dependsOn": anything("Which tasks must come first."),
        "topologyPolicy": text("How its pods sit on their nodes."),
        "maxRetry": whole("How often it is tried.", default=3),
        "partitionPolicy": anything("How it is divided."),
    },
    description="So many pods alike.",
)

_JOB = Definition(
    group=VOLCANO_JOBS,
    version="v1alpha1",
    kind="Job",
    plural="jobs",
    about="Tasks whose pods start together and run to their end.",
    spec=record(
        {
            "schedulerName": text("Who decides where its pods run.", default="volcano"),
            "minAvailable": whole("How many pods must start together.", minimum=0),
            "minSuccess": whole("How many pods must succeed.", minimum=1),
            "tasks": listed(_TASK, "What it consists of."),
            "queue": text("The queue that it waits in.", default="default"),
            "priorityClassName": text("How important it is."),
            "policies": _POLICIES,
            "plugins": mapped(listed(text()), "What its pods are given besides."),
            "volumes": listed(anything(), "What they can mount."),
            "maxRetry": whole("How often it is tried.", default=3),
            "ttlSecondsAfterFinished": whole("How long it is kept when done."),
            "runningEstimate": text("How long it may take."),
            "networkTopology": _TOPOLOGY,
        },
        description="What the job is.",
    ),
    status=open_ended(
        record(
            {
                "state": open_ended(
                    record({"phase": text("How far it is.")}, description="How far it is.")
                ),
                "minAvailable": whole("How many pods must start together."),
                "pending": whole("How many pods wait."),
                "running": whole("How many pods run."),
                "succeeded": whole("How many pods have succeeded."),
                "failed": whole("How many pods have failed."),
                "terminating": whole("How many pods are about to go."),
            },
            description="How the job stands.",
        )
    ),
    columns=(
        ("STATUS", "string", ".status.state.phase"),
        ("minAvailable", "integer", ".status.minAvailable"),
        *_STATUS_COLUMNS,
    ),
    wide=(("QUEUE", "string", ".spec.queue"),),
    short_names=("vcjob", "vj"),
)

_NAMED = record({"name": text("Its name.")}, "name", description="One by its name.")
_MATCHING = record({"pattern": text("A regular expression.")}, description="Those named like this.")
_LABELLED = record(
    {
        "matchLabels": mapped(text(), "Labels that they have."),
        "matchExpressions": listed(
            record(
                {
                    "key": text("A label."),
                    "operator": text("In, NotIn, Exists or DoesNotExist."),
                    "values": listed(text(), "Values of the label."),
                },
                "key",
                "operator",
                description="A requirement of a label.",
            ),
            "Requirements that they meet.",
        ),
    },
    description="Those with these labels.",
)

_HYPER_NODE = Definition(
    group=VOLCANO_TOPOLOGY,
    version="v1alpha1",
    kind="HyperNode",
    plural="hypernodes",
    about="Nodes that are near each other, as below one switch.",
    spec=record(
        {
            "tier": whole("How wide it is: 1 is the narrowest.", minimum=0),
            "tierName": text("What its tier is called."),
            "members": listed(
                record(
                    {
                        "type": choice("Node", "HyperNode", description="What they are."),
                        "selector": record(
                            {
                                "exactMatch": _NAMED,
                                "regexMatch": _MATCHING,
                                "labelMatch": _LABELLED,
                            },
                            description="Which: one of these ways.",
                        ),
                    },
                    "type",
                    description="Nodes, or HyperNodes of lower tiers.",
                ),
                "What it consists of.",
            ),
        },
        "tier",
        description="What the HyperNode is.",
    ),
    status=open_ended(
        record(
            {
                "nodeCount": whole("How many nodes are in it."),
                "conditions": conditions(),
            },
            description="How the HyperNode stands.",
        )
    ),
    columns=(
        ("Tier", "string", ".spec.tier"),
        ("NodeCount", "integer", ".status.nodeCount"),
    ),
    short_names=("hn",),
    namespaced=False,
)

DEFINITIONS = (_QUEUE, _POD_GROUP, _JOB, _HYPER_NODE)
