"""From numbers to pages, plots and tables: draws what `evaluation.numbers` counted, counts nothing.

The page is one HTML file that loads nothing from anywhere and works without JavaScript.
"""
