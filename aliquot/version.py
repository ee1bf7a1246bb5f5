"""The version of Aliquot: apart from the package, which is the library's door to everything."""

__version__ = "0.1.0"
KUBERNETES = "1.35"
"""The release of Kubernetes whose kinds are known here (`dialects.schemas.kubernetes`)."""
