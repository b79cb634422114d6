"""Methods side by side: the same budget for each, several seeds, one report.

plan.py reads what is compared, sharing.py spares work that runs have in common, runs.py executes, results.py makes
figures of the run folders.
"""
