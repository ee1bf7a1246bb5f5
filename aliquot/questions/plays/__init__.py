"""What is measured of simulations: side by side, and over time."""
