"""Water-filling: how quotas share what there is, exactly, in integers."""
