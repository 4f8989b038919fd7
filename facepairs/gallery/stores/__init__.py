"""Where a gallery is kept: in a file, or in a PostgreSQL database."""
