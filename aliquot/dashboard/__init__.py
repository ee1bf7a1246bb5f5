"""The page in the browser: a cluster watched, its state as rows, and the server that streams them.

Reads only: nothing here writes to a cluster. What the page shows is in `page`, as plain modules.
"""
