"""Exporting a bundle's network for other runtimes, with a parity check."""
