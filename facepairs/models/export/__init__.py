"""Keras models to ONNX, SavedModel, LiteRT and `.keras` files, and back."""
