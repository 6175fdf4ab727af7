"""`otter run` on every notebook, one after the other.

Arguments: otter's command, the autograder archive, the folder of submissions, the folder for
`<student>/results.json`.
"""

import subprocess
import sys
from pathlib import Path

otter, archive, submitted, results = sys.argv[1:]
for notebook in sorted(Path(submitted).glob("*/*/*.ipynb")):
    target = Path(results) / notebook.parts[-3]
    target.mkdir()
    subprocess.run([otter, "run", "-a", archive, "-o", str(target), str(notebook)], check=True)
