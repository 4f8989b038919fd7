"""Networks, bundles, embeddings and scores small enough to check by hand."""
