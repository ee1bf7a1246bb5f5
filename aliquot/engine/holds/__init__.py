"""Room and right that are kept for a claim: nominations, reservations, assumed pods."""
