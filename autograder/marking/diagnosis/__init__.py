"""What is wrong with an answer, told from the numbers alone: pure functions that `marking.diagnose` puts in order."""
