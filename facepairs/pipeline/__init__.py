"""`tf.data`: from blocks of index pairs to batches of `uint8` images."""
