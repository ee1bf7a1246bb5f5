"""Reports: one file of HTML, which a browser shows without scripts and without a network."""
