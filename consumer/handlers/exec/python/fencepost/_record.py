"""A record as the worker gives it to a handler."""

from __future__ import annotations

import base64
from typing import Any, Mapping, Optional, Union


class Record:
    """One call for one record. A handler may get a record again, with a higher token."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @property
    def id(self) -> str:
        """The same for each call: a receiver that knows it does not repeat the effect."""
        id: str = self._fields["record_id"]
        return id

    @property
    def token(self) -> int:
        """The fencing token: a receiver refuses one that is lower than the last it saw."""
        token: int = self._fields["token"]
        return token

    @property
    def attempt(self) -> int:
        """Counts the calls for the record, from 1."""
        attempt: int = self._fields["attempt"]
        return attempt

    @property
    def value(self) -> Any:
        """The parsed JSON. With `value: text` in the pipeline a str, or bytes if not UTF-8."""
        fields = self._fields
        if "value" in fields:
            return fields["value"]
        return _text_or_bytes(fields, "value_text", "value_base64")

    @property
    def key(self) -> Union[str, bytes, None]:
        return _text_or_bytes(self._fields, "key", "key_base64")

    @property
    def headers(self) -> dict[str, Union[str, bytes, None]]:
        """Of equal names the last counts. Bytes where a header is not UTF-8."""
        headers = dict(self._fields["headers"])
        for name, value in self._fields.get("headers_base64", {}).items():
            headers[name] = base64.b64decode(value)
        return headers

    @property
    def topic(self) -> str:
        topic: str = self._fields["topic"]
        return topic

    @property
    def partition(self) -> int:
        partition: int = self._fields["partition"]
        return partition

    @property
    def offset(self) -> int:
        offset: int = self._fields["offset"]
        return offset

    @property
    def timestamp(self) -> Optional[int]:
        """In milliseconds since 1970."""
        timestamp: Optional[int] = self._fields["timestamp"]
        return timestamp

    def heartbeat(self) -> None:
        """Starts the timeout of the call anew; of a batch, for all its records."""
        from ._calls import heartbeat

        heartbeat()

    def __repr__(self) -> str:
        return f"Record(id={self.id!r}, token={self.token}, attempt={self.attempt})"


def _text_or_bytes(fields: Mapping[str, Any], text: str, encoded: str) -> Union[str, bytes, None]:
    if encoded in fields:
        return base64.b64decode(fields[encoded])
    found: Optional[str] = fields.get(text)
    return found
