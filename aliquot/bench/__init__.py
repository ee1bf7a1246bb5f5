"""The benchmarks: of the engine, the API server, and a whole cluster beside kube-scheduler."""
