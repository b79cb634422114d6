"""What does a training example cost when dialogues get longer?"""
