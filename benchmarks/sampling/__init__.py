"""How fast completions are sampled, against transformers' `generate`: `python -m benchmarks.sampling --help`."""
