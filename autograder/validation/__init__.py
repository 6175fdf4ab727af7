"""Proof that an assignment marks as it must: its solution, its catalogue, and mutants of its solution."""
