"""Training on several devices or several workers (hosts)."""
