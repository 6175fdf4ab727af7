"""The same notebooks and the same checks for other graders: nbgrader and otter-grader."""
