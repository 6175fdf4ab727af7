"""nbgrader's settings for this course, for those who open it with nbgrader's own commands.

nbgrader runs this file and brings `get_config` along.
"""

c = get_config()  # noqa: F821 (nbgrader defines the name; traitlets' own function of that name is another one)

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
# The reference and the catalogues stand beside the source notebook and must never reach a student.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "__pycache__", "*.pyc", "*.py", "*.toml", "feedback"]

# A stub that nobody has touched must run without an error.
c.ClearSolutions.code_stub = {"python": "# Write your code here"}
c.ClearSolutions.text_stub = "Write your answer here."
