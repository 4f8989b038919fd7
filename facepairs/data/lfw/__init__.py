"""Labeled Faces in the Wild: download, checksums, and the official lists."""
