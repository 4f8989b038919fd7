"""The command line: one file a command; each parses, calls one workflow, prints."""
