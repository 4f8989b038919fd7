"""Commands that decide who a photo shows: `verify`, `gallery` and `serve`."""
