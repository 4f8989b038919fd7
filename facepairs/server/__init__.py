"""The HTTP API and the web page of `facepairs serve`, on the same `Verifier` as everything else."""
