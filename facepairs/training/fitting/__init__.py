"""Models whose weights are fitted rather than trained by gradient descent."""
