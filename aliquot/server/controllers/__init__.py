"""Small controllers: what makes a cluster of objects move by itself."""
