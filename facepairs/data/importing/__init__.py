"""Importing photos of people from the layouts in which data sets are published."""
