"""GPUs one by one: what is left of each, and what namespaces may use of them."""
