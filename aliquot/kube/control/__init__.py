"""The control plane: intake, scheduler, executor, operator, and what they write."""
