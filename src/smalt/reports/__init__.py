"""The pictures: a static HTML report of a run, and tables for the terminal.

Importing this package is cheap: matplotlib is loaded when the first chart is drawn.
"""
