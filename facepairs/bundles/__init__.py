"""The bundle: a folder with everything that verification needs."""
