"""Field ownership: who manages which field of an object, and server-side apply."""
