"""Indexing folders of faces; people, pairs, samplers and splits; LFW; synthetic faces."""
