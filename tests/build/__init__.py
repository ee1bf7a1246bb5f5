"""Objects for tests: `manifests` builds Kubernetes manifests, `values` the engine's values."""
