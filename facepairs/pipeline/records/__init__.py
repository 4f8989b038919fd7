"""The TFRecord cache of sampled pairs: manifest, shards, building, reading."""
