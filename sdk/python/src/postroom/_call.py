"""Calls operations with checked arguments."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str, datetime),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
    "list": (list, tuple),
    "dict": (dict,),
}


class Field(NamedTuple):
    """An argument of an operation: its name in JSON, its types, and where it goes."""

    name: str
    types: str
    required: bool
    place: str


class Operation(NamedTuple):
    """An operation of the API."""

    name: str
    method: str
    path: str
    fields: Mapping[str, Field]

    def read(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the query and the body of a call, or raise a TypeError that names the wrong argument."""
        query: dict[str, Any] = {}
        body: dict[str, Any] = {}
        for argument, value in given.items():
            field = self.fields.get(argument)
            if field is None:
                near = difflib.get_close_matches(argument, self.fields, 1)
                raise TypeError(f"{self.name} has no argument {argument}" + (f": did you mean {near[0]}?" if near else ""))
            check(argument, value, field.types)
            (query if field.place == "query" else body)[field.name] = value
        for argument, field in self.fields.items():
            if field.required and argument not in given:
                raise TypeError(f"{self.name} needs the argument {argument}")
        return query, body if any(f.place == "body" for f in self.fields.values()) else None


def check(argument: str, value: object, types: str) -> None:
    """Raise a TypeError unless a value has one of the types, given by their names."""
    for name in types.split():
        if isinstance(value, _TYPES[name]) and (name == "bool" or not isinstance(value, bool)):
            return
    wanted = " or ".join(types.split())
    raise TypeError(f"{argument} must be {wanted}, not {type(value).__name__}: {value!r}")


class Group:
    """Operations about one kind of thing."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def _call(
        self, operation: Operation, path: Mapping[str, str], fields: Mapping[str, Any], idempotency_key: str | None = None
    ) -> Any:
        query, body = operation.read(fields)
        return self._client.request(
            operation.method, operation.path, query=query, body=body, idempotency_key=idempotency_key, **path
        )

    def _list(self, operation: Operation, path: Mapping[str, str], fields: Mapping[str, Any]) -> Iterator[Any]:
        query, _ = operation.read(fields)
        found: Iterator[Any] = self._client.list(operation.path, query=query, **path)
        return found
