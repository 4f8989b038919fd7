"""Stand-ins for archives, web servers and remote file systems."""
