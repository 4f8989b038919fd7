"""Face detection, framing, photo-quality hints, and the overlay picture."""
