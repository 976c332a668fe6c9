"""Values of named fields of JSON records, for those who ask for them. Looks at nothing else of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

Tags = tuple[str | None, ...]


def tag_reader(names: Sequence[str]) -> Callable[[bytes | Raw], Tags]:
    """Reads the fields `names` of one JSON object: text as it is, other values as they are written, None for null and
    for what is not there. `meta.tenant` is the field of an object in the record, unless the record itself has one of
    that name. The object must be known to be valid. Raises InputError for names that are not possible."""
    heads = list(dict.fromkeys([*names, *(name.partition(".")[0] for name in names if "." in name)]))
    fields = {head: f"field{index}" for index, head in enumerate(heads)}
    try:
        record = msgspec.defstruct(
            "TaggedRecord",
            [(field, Raw | UnsetType, UNSET) for field in fields.values()],
            rename={field: head for head, field in fields.items()},
            gc=False,
        )
    except ValueError:
        bad = next((name for name in names if not _is_possible(name)), names[0])
        raise InputError(
            f"no field can be asked for by the name {shown(bad)}",
            hint='Names may not hold ", \\ or control characters.',
        ) from None
    decode = msgspec.json.Decoder(record).decode
    places = []
    for name in names:
        head, _, rest = name.partition(".")
        places.append((fields[name], fields[head], tag_reader([rest]) if rest and head else None))

    def read(text: bytes | Raw) -> Tags:
        found = decode(text)
        tags = []
        for field, head, inner in places:
            value = getattr(found, field)
            if value is UNSET and inner is not None:
                within = getattr(found, head)
                opens = not isinstance(within, UnsetType) and bytes(within).startswith(b"{")
                tags.append(inner(within)[0] if opens else None)
            else:
                tags.append(_text(value))
        return tuple(tags)

    return read


def _text(value: Raw | UnsetType) -> str | None:
    if isinstance(value, UnsetType):
        return None
    written = bytes(value)
    if written == b"null":
        return None
    return msgspec.json.decode(written, type=str) if written.startswith(b'"') else written.decode()


def _is_possible(name: str) -> bool:
    return not any(char in '"\\' or char < " " for char in name)
