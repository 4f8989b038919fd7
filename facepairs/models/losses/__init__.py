"""Training objectives, one short class a file.

Embedding networks train on genuine pairs only, each person once per batch. An impostor pair is then
an image of one pair with an image of another; each class says which ones it uses.
"""
