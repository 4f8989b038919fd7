"""Scores of many pairs of photos: those of a CSV file, a data frame or a list of files."""
