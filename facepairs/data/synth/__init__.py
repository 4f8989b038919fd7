"""Synthetic faces: photos of invented people, drawn from a seed, in LFW's folder layout."""
