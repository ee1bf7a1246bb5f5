"""The kinds that are answered from other objects: who may do what, and what is used."""

from aliquot.server.kinds.kind import Kind

METRICS = "metrics.k8s.io"
_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def _review(group: str, name: str, plural: str, namespaced: bool = False) -> Kind:
    return Kind(group, "v1", name, plural, namespaced, generation=False, verbs=("create",))


def _metrics(name: str, plural: str, namespaced: bool) -> Kind:
    verbs = ("get", "list")
    return Kind(METRICS, "v1beta1", name, plural, namespaced, generation=False, verbs=verbs)


REVIEWS: tuple[Kind, ...] = (
    _review(_AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews"),
    _review(_AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    _review(_AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    _review(_AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    _review(_AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews"),
)
ANSWERED_KINDS: tuple[Kind, ...] = (
    *REVIEWS,
    _metrics("NodeMetrics", "nodes", False),
    _metrics("PodMetrics", "pods", True),
)
