"""Cross-validation on LFW's View 2, fold by fold."""
