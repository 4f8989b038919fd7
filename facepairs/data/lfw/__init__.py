"""Labeled Faces in the Wild: downloading it and reading its official lists."""
