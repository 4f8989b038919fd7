"""The Fisher-vector network: dense descriptors, Gaussian mixture, projection."""
