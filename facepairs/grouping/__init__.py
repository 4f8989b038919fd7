"""A heap of photos sorted by people: faces are found, grouped, and kept in a folder of people."""
