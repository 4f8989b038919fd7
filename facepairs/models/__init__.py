"""Keras networks for pairs of faces, their training objectives and their export."""
