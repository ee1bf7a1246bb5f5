"""What results on a terminal are drawn with: grids, bars, signs, progress, live pictures."""
