"""The training loop, its schedule, its steps, its validation and its callbacks."""
