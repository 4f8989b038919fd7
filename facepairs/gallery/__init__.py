"""Galleries of known people: enrol them, and identify them in photos."""
