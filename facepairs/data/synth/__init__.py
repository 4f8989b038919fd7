"""Synthetic faces in LFW's folder layout, drawn from a seed."""
