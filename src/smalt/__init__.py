"""Smalt: reinforcement learning for code models over several turns of execution feedback."""

__version__ = "0.1.0"
