"""The plots of a report, drawn with matplotlib from `ReportData`."""
