"""How long does a whole step of Cobalt take: sample, grade, train?"""
