"""Bundles, framing and `Verifier`: ONNX Runtime, Pillow and NumPy, no TensorFlow."""
