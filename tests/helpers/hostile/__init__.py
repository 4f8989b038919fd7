"""Hostile image files, and the child process that feeds them to the package."""
