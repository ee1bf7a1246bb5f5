"""Known workloads: traces of clusters, and work that is made up."""
