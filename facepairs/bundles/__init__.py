"""The bundle: one folder with everything that `verify` needs."""
