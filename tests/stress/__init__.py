"""Stress harnesses: kills, scarce resources, hostile files, fuzzing and long runs."""
