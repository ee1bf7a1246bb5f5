"""The claims that wait, in the order in which a cycle tries them."""
