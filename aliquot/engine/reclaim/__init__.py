"""Who is evicted: the victim search, and what it is made of."""
