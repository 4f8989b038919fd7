"""Atomic outputs, locks, places, validation, platform differences, progress, threads."""
