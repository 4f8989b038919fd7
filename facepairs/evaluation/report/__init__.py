"""The report of an evaluation: `ReportData`, and the page, folder, tables and plots made from it.

The page is one HTML file that loads nothing and works without JavaScript.
"""
