"""Finding and aligning faces, what is known of photos, and hints on them."""
