"""What the way in and the way out tell each other: what pods and volumes show, what writes met."""
