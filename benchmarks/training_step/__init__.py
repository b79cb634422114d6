"""How long does a training step take, and what share of it is forced by its distinct tokens alone?"""
