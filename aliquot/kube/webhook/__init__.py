"""The admission webhook: what is refused and filled in before an API server keeps it."""
