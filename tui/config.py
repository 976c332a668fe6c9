"""The user's `config.toml`: the dashboard's theme and keys. What is wrong in it is said, and the rest holds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvtier_cli.wording import did_you_mean, escape, shown
from tui.bindings import ALL, COMPARE, FILTER, MAIN, MOVES, Key
from tui.names import THEMES

_MODIFIERS = ("ctrl", "shift", "alt", "super")
_SCOPES = ((*MAIN, *MOVES), FILTER, (*COMPARE, *MOVES))
_NAMED = {
    ".": "full_stop",
    ",": "comma",
    "+": "plus",
    "-": "minus",
    "=": "equals_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "/": "slash",
    ":": "colon",
    "?": "question_mark",
    " ": "space",
    "esc": "escape",
    "return": "enter",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """`theme` None: not said. `keys`: a binding's id → its keys. `remarks`: what was wrong."""

    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def config_path() -> Path:
    """Where the user's settings are; the file need not be there."""
    from platformdirs import user_config_path

    return user_config_path("kvtier", appauthor=False) / "config.toml"


def read_settings(path: Path) -> Settings:
    """The settings in the file at `path`; none where there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        return Settings(remarks=(f"{path} cannot be read: {str(error).lower()}",))
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Settings(remarks=(f"{path}: {str(error).lower()}",))
    remarks: list[str] = []
    theme = _theme(found.get("dash"), path, remarks)
    keys = _keys(found.get("keys"), path, remarks)
    return Settings(theme, keys, tuple(remarks))


def _theme(dash: Any, path: Path, remarks: list[str]) -> str | None:
    if dash is None:
        return None
    if not isinstance(dash, dict):
        remarks.append(f"{path}: dash: expected a table, found {shown(dash)}")
        return None
    theme = dash.get("theme")
    if theme is None or theme in THEMES:
        return theme
    remarks.append(f"{path}: dash.theme: there is no theme {shown(theme)}; {did_you_mean(str(theme), THEMES)}")
    return None


def _keys(given: Any, path: Path, remarks: list[str]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        remarks.append(f"{path}: keys: expected a table, found {shown(given)}")
        return {}
    known = {key.id: key for key in ALL}
    keys: dict[str, str] = {}
    for name, value in given.items():
        where = f"{path}: keys.{escape(name)}"
        if name not in known:
            remarks.append(f"{where}: there is no such binding; {did_you_mean(name, known)}")
        elif not isinstance(value, str) or not value.strip(","):
            remarks.append(f'{where}: expected keys such as "ctrl+p" or "k,up", found {shown(value)}')
        else:
            keys[name] = ",".join(map(_key_name, _split(value)))
    for name in list(keys):
        other = _conflict(known[name], keys[name], keys)
        if other is not None:
            remarks.append(f"{path}: keys.{name}: {shown(given[name])} is the key of {other.id} already")
            del keys[name]
    return keys


def _split(value: str) -> list[str]:
    """Keys between commas; a comma that stands for itself is alone."""
    if value == ",":
        return [value]
    return [part.strip() or part for part in value.split(",") if part]


def _key_name(key: str) -> str:
    *modifiers, last = key.split("+") if len(key) > 1 and not key.endswith("+") else [key]
    modifiers = [word.lower() for word in modifiers if word.lower() in _MODIFIERS]
    return "+".join([*modifiers, _NAMED.get(last, last)])


def _conflict(key: Key, names: str, keys: Mapping[str, str]) -> Key | None:
    """Another binding of the same screen that has one of these keys."""
    wanted = set(names.split(","))
    for scope in _SCOPES:
        if key not in scope:
            continue
        for other in scope:
            if other is not key and wanted & set(keys.get(other.id, other.keys).split(",")):
                return other
    return None
