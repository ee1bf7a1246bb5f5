"""Everything that measures: the engine, the API server, a whole cluster beside kube-scheduler."""
