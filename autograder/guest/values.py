"""What an answer becomes on the wire: plain values, or its type's name.

The NumPy functions are bound when the fork server starts, before any student's code, so that a patched
`numpy` in a submission changes its own arithmetic and not this reading. Nothing here is trusted by the host.
"""

import sys
from array import array as memory_array
from numbers import Real
from typing import Any

from numpy import array, bool_, complexfloating, copyto, empty, float64, floating, generic, integer, ndarray

from . import wire

_TYPE_NAME = type.__dict__["__name__"].__get__
_PLAIN = (bool, int, float, str, type(None))
_INT64 = range(-(2**63), 2**64)


def build_value(value: Any, cap: int) -> wire.WireValue:
    """The wire value of an answer; one of more than `cap` bytes arrives as its type's name."""
    if value is ...:
        return wire.Absent()
    try:
        return _build_known(value, cap) or wire.Other(name_type(value))
    except Exception:  # a hostile or broken object of the student's: its type's name is all that leaves
        return wire.Other(name_type(value))


def _build_known(value: Any, cap: int) -> wire.WireValue | None:
    kind = type(value)
    if kind in _PLAIN:
        return _build_plain(value)
    if isinstance(value, generic):
        return _build_scalar(value)
    if isinstance(value, list | tuple | memory_array):
        return _build_array(array(list(value)), cap) if len(value) else None
    if isinstance(value, int | float | str):
        return _build_plain(next(plain(value) for plain in (int, float, str) if isinstance(value, plain)))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, ndarray):
        return _build_array(array(value, subok=False), cap)
    return None


def _build_plain(value: Any) -> wire.Plain | None:
    if type(value) is int and value not in _INT64:
        return None
    return wire.Plain(cut_text(value, wire.MAX_TEXT) if type(value) is str else value)


def _build_scalar(value: Any) -> wire.WireValue | None:
    if isinstance(value, bool_):
        return wire.Plain(bool(value))
    if isinstance(value, integer):
        return _build_plain(int(value))
    if isinstance(value, floating):
        return wire.Plain(float(value))
    if isinstance(value, complexfloating):
        return wire.build_array(array(value))
    return _build_plain(str(value)) if isinstance(value, str) else None


def _build_array(value: ndarray, cap: int) -> wire.WireValue | None:
    if value.ndim == 0 and value.dtype.kind in "biuf":
        return _build_scalar(value[()])
    if value.nbytes > cap:
        return None
    if value.dtype.kind == "f" and value.dtype.itemsize > 8:
        narrow = empty(value.shape, float64)
        copyto(narrow, value, casting="same_kind")
        value = narrow
    if value.dtype.kind == "O" and all(isinstance(entry, Real) for entry in value.flat):
        value = value.astype(float64)
    if value.dtype.kind not in "biufc":
        return wire.Other(f"array of {value.dtype.kind}"[: wire.MAX_TEXT])
    return wire.build_array(value)


def name_type(value: Any) -> str:
    """The name of a value's type, cut to the wire's length."""
    return cut_text(str(_TYPE_NAME(type(value))), 200)


def cut_text(text: str, length: int) -> str:
    """The start of a text, without lone surrogates, which no encoding holds."""
    return text[:length].encode("utf-8", "replace").decode()
