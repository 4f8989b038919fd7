"""Folders, lists and pairs of faces: standard library, NumPy and Pillow only."""
