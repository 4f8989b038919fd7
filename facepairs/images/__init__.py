"""Opening untrusted images: formats, limits, EXIF orientation, decode budget."""
