"""Training objectives: a file for each idea, a short class for each loss.

Embedding networks train on genuine pairs only, each person once per batch. An impostor pair is then
an image of one pair with an image of another; each class says which ones it uses.
"""
