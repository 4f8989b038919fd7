"""`facepairs bench`: how fast pairs reach a model, against what people would write instead."""
