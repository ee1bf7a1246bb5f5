"""One suite of what a Kubernetes API server does, run against ours and against the real one.

Every test asks `api`, `kube` or `kubectl`, and is run once against the embedded server, and once
more against kube-apiserver and etcd where their binaries are found as envtest finds them. What the
real server says is right: an assertion that fails there is a defect of the test.
"""
