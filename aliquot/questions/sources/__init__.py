"""What a question is asked of: a live cluster, a snapshot, manifests."""
