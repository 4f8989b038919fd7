"""The run's TensorBoard log: scalars, pictures, embedding projector."""
