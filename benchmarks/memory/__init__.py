"""How much memory do the logits of a training step take?"""
