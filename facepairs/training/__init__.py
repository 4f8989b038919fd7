"""Workflows that learn: from a folder of faces to a run folder with a bundle in it."""
