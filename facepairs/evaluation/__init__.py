"""Scores of pairs → metrics, calibration, one `Summary` → report; never on pairs used to choose."""
