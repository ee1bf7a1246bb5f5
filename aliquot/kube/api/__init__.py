"""The client of the API server: access, credentials, requests, refusals, resources."""
