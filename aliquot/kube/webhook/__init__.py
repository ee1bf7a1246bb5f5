"""The admission webhook: refuses invalid objects and fills in defaults before they are stored."""
