"""Answers on this side of the wall and on the wire."""

from typing import Any

import numpy as np

from autograder.guest import wire
from autograder.records import Missing, Opaque, Value


def build_wire_input(value: Any) -> Any:
    """A lesson's variable as the guest takes it."""
    return wire.build_array(value) if isinstance(value, np.ndarray) else value


def read_value(value: wire.WireValue) -> Value:
    """The answer that a wire value describes. `WireError` when it lies."""
    if isinstance(value, wire.Plain):
        return value.value[: wire.MAX_TEXT] if isinstance(value.value, str) else value.value
    if isinstance(value, wire.Array):
        return wire.read_array(value)
    if isinstance(value, wire.Other):
        return Opaque(value.type_name[:200])
    return Missing()


def build_wire_value(value: Value) -> wire.WireValue:
    """An answer as a wire value, to be kept; the inverse of `read_value`."""
    if isinstance(value, np.ndarray):
        return wire.build_array(value)
    if isinstance(value, Opaque):
        return wire.Other(value.type_name)
    if isinstance(value, Missing):
        return wire.Absent()
    return wire.Plain(value)
