"""What a placement does to the room that is left: how much of it the usual pods could not use."""
