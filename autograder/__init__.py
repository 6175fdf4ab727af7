"""Autograded exercises in NumPy notebooks, with answers and tests kept apart from student code."""
