"""Finding and aligning faces, what is known of photos, hints on them, and the overlay picture."""
