"""Known people: their embeddings in one file, and who of them a photo shows."""
