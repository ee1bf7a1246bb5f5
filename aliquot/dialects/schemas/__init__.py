"""The schemas of every kind that is known here, and the check of objects against them."""
