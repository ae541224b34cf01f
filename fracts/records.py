"""Which classes may stand in a file: those that say so, by their name.

A file names a class, and only a class found here is built from it: nothing in a file is ever imported or
called. A class of the library stands under its own name, so that it may move from room to room; one from
elsewhere under its full name.
"""

from typing import Any, TypeVar

Class = TypeVar("Class", bound=type[Any])

RECORDS: dict[str, type[Any]] = {}


def record(cls: Class) -> Class:
    """Let objects of a dataclass or NamedTuple stand in files: its fields are what is kept.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    >>> record(Point) is RECORDS[record_name(Point)]
    True
    """
    RECORDS[record_name(cls)] = cls
    return cls


def record_name(cls: type[Any]) -> str:
    """The name that `cls` has in a file."""
    return cls.__name__ if cls.__module__.startswith("fracts.") else f"{cls.__module__}.{cls.__qualname__}"
