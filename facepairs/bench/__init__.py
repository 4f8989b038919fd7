"""Measure how fast pairs of faces reach a model: our stores, the usual pipelines, the limit."""
