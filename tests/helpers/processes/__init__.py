"""The command line, scripts, servers and workers as tests run them."""
