"""The API server as a client sees it: access, requests, refusals, kinds."""
