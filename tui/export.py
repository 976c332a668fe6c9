"""What can be written to a file: the screen as SVG or text, the request as JSON."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.render.filter_json import filter_as_json
from kvtier_cli.render.json_out import document
from kvtier_cli.render.story_json import story_as_json
from tui.session.comparison import ComparisonView
from tui.session.views import Snapshot

if TYPE_CHECKING:
    from textual.app import App


def screen_text(app: App[Any]) -> str:
    """The screen as plain text, a line a line."""
    width, height = app.size
    del width
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips[:height]]
    return "\n".join(lines) + "\n"


def request_json(snapshot: Snapshot) -> bytes:
    """The request on show as a document like that of `kvtier lookup --json`, with the figures so far."""
    moment = snapshot.moment
    body: dict[str, Any] = {
        "file": snapshot.title,
        "request": None if moment is None else {"id": moment.label, "index": moment.index},
        "topology": snapshot.topology.name,
        "filter": filter_as_json(snapshot.filter.parse),
        **({"blocks": [], "summary": None} if moment is None or moment.story is None else story_as_json(moment.story)),
        "figures": {} if moment is None else moment.figures,
    }
    return document("dash", body)


def comparison_json(view: ComparisonView) -> bytes:
    """Both sides' figures and the requests that differ, with the change in blocks served."""
    sides = [
        {"name": name, "filter": side.text, "figures": side.figures}
        for name, side in zip(("A", "B"), view.sides, strict=True)
    ]
    differing = [{"request": request, "change": view.change(request)} for request in view.differing]
    body = {"file": view.tape.source.name, "variants": sides, "compared": view.compared, "differing": differing}
    return document("dash-compare", body)


def write_file(path: str, data: bytes) -> None:
    """Write a file that is not there yet, whole or not at all. Raises InputError and EnvironmentFault."""
    target = Path(path)
    if not path.strip():
        raise InputError("the file has no name")
    if target.exists():
        raise InputError("is there already; give another name", file=path)
    if not target.absolute().parent.is_dir():
        raise InputError("lies in no folder that there is", file=path)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise EnvironmentFault(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error
