"""The control plane: intake, scheduler, executor, operator, and the writer they share."""
