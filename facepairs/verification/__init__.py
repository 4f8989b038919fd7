"""`Verifier`, scoring and many images at once: ONNX Runtime, Pillow and NumPy, no TensorFlow."""
