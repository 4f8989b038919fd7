"""Shared by all commands: options, output, progress and errors."""
