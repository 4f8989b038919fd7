"""Passes over many images on Apache Beam: the same work as in threads, on other machines.

Floor 4: may import verification, pipeline, data and what lies below them, never training.
"""
