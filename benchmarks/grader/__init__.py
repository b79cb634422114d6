"""How fast the grader is, against peers and floors: `python -m benchmarks.grader --help`."""
