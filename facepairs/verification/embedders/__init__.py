"""Networks of others: ONNX files that a TOML describes."""
