"""The demo's recipe, embedded in the package."""

from __future__ import annotations

from pathlib import Path

DEMO_RECIPE = Path(__file__).parent / "demo.yaml"
