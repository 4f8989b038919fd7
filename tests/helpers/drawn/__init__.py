"""Drawn photos and people, and data sets, caches and crop plans of them."""
