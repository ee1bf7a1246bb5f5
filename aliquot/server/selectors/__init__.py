"""Which objects a list, a watch or a budget is about."""
