"""Label and field selectors: of lists, watches, budgets, webhooks and workloads."""
