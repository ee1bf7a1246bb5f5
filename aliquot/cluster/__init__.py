"""The embedded, in-process cluster: objects, virtual time, workloads, benchmarks."""
