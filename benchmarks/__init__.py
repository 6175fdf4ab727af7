"""How fast grading is: `make bench`."""
