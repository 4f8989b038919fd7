"""Keras networks for pairs of faces, their training objectives, and their way into a bundle."""
