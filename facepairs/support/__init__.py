"""Atomic outputs, locks, checksums, validation, platform differences, progress, threads."""
