"""Passes over many images on Apache Beam, and the remote file systems it reads and writes."""
