"""Metrics of scored pairs, from arrays alone."""
