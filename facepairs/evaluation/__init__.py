"""From scores to numbers that do not flatter: NumPy and scikit-learn only."""
