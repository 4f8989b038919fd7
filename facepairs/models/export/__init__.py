"""Keras models to ONNX, LiteRT and `.keras` files, and back."""
