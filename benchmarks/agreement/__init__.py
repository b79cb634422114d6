"""Does the grader agree with verdicts that are known? Reference, buggy and generated programs say.

`python -m benchmarks.agreement --data FOLDER --out FOLDER` grades them and compares;
`docs/results/grader-agreement.md` holds the result.
"""
