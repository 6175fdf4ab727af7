"""The packages that student code can import are found without importing them."""

import pytest

from autograder.errors import SandboxUnavailable
from autograder.sandbox.bubblewrap import STUDENT_PACKAGES, find_package_folders


@pytest.mark.parametrize("module", ["numpy.linalg", "numpy", "matplotlib.pyplot", "numpy.random.mtrand", "json.tool"])
def test_a_module_that_is_there_is_found(module: str) -> None:
    assert find_package_folders((*STUDENT_PACKAGES, module))


@pytest.mark.parametrize("module", ["numpy.linag", "seabron", "matplotlib pyplot", "matplotlib.pyplot.figure", ""])
def test_a_module_that_is_not_there_is_named_with_the_key_that_asks_for_it(module: str) -> None:
    with pytest.raises(SandboxUnavailable, match=f"course.toml, preload: the module {module} is not installed"):
        find_package_folders((*STUDENT_PACKAGES, module))
