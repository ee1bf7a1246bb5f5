"""How results look on a terminal: bars, grids, tables and the live view."""
