"""Coverage-guided fuzzing of one target.

    pip install "atheris>=3"
    python tests/fuzz/run.py wire -max_total_time=300

Inputs that reach new code are kept in a folder of their own, by default `build/fuzz/<target>`; one that
breaks the target is written there as `crash-...` or `timeout-...`. What is worth keeping is put into
`tests/fuzz/corpus/<target>` by hand, under a name that says what it is.
"""

import importlib
import sys
from pathlib import Path

import atheris

HERE = Path(__file__).parent


def main() -> None:
    """Fuzz the named target; all further arguments are libFuzzer's."""
    target, *options = sys.argv[1:]
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    with atheris.instrument_imports(include=["autograder"]):
        check_bytes = importlib.import_module(f"fuzz_{target}").check_bytes

    def try_bytes(data: bytes) -> None:
        check_bytes(data)

    found = HERE.parents[1] / "build" / "fuzz" / target
    found.mkdir(parents=True, exist_ok=True)
    limits = ["-timeout=5", "-rss_limit_mb=1024", "-max_len=4000", f"-artifact_prefix={found}/"]
    atheris.Setup([sys.argv[0], str(found), str(HERE / "corpus" / target), *limits, *options], try_bytes)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
