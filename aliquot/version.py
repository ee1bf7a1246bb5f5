"""The version of Aliquot: apart from the package, which is the library's door to everything."""

__version__ = "0.1.0"
