"""JSON patches, merge patches and strategic merge patches."""
