"""Reading untrusted photos: formats, limits, faces, crops, hints and what is remembered of them."""
