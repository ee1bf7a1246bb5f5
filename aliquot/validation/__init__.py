"""What is wrong with a set of objects: for the commands, the webhook and the simulation."""
