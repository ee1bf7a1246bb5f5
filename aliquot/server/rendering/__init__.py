"""How answers look: whole objects, tables, metadata only."""
