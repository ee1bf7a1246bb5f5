"""Which nodes the volumes of a pod leave it: bound, to be chosen, to be provisioned, limited."""
