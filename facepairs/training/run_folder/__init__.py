"""The folder of one training run and the checkpoint in it."""
