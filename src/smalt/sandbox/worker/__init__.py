"""The code inside a sandbox worker: a warm server that forks one child per program.

Everything here runs in the worker's own interpreter, without site-packages, and imports the standard library
only. `frames`, `values` and `requests` are shared with the caller's side.
"""
