"""otter-grader's `grade_submission` on every notebook, in one process; run by the Python that has otter-grader.

Arguments: the autograder archive, the folder of submissions, the folder for `<student>/results.json`.
"""

import json
import sys
from pathlib import Path

from otter.api import grade_submission

archive, submitted, results = map(Path, sys.argv[1:])
for notebook in sorted(submitted.glob("*/*/*.ipynb")):
    target = results / notebook.parts[-3]
    target.mkdir()
    graded = grade_submission(str(notebook), str(archive), quiet=True)
    (target / "results.json").write_text(json.dumps({"tests": [{"score": graded.total}]}), encoding="utf-8")
