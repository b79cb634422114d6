# `make demo` runs the main job, `make test` the tests; both do all set-up in a virtual environment of their own.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: demo test lint clean

demo: $(STAMP)
	$(VENV)/bin/smalt demo --out runs/demo

test: $(STAMP)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest -n 2 -m "not slow"

$(STAMP): pyproject.toml constraints/cpu.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --constraint constraints/cpu.txt --editable '.[dev,gguf,lora]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs
