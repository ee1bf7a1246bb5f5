"""How densely pods are packed: placements of the engine beside reference rules."""
