"""HTTP: authentication, paths, verbs, bodies, watches, pages and refusals."""
