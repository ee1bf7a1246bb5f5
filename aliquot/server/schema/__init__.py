"""The schemas of kinds, and the validation of objects against them."""
