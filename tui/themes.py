"""The colours: four themes, and the styles that lines are drawn in. A style has a name; only here has it a colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, as Rich knows them. `dark`: whether the background is."""

    name: str
    dark: bool
    background: str
    panel: str
    text: str
    muted: str
    rule: str
    accent: str
    cursor: str
    on_fill: str
    primary: str
    promoted: str
    filtered: str
    absent: str
    denied: str
    failed: str
    held: str
    gave_up: str
    unreached: str

    @property
    def is_terminal(self) -> bool:
        """Whether the colours are the terminal's own."""
        return self.background == "default"

    @cached_property
    def styles(self) -> Mapping[str, Style]:
        """Style by name: an outcome's, a cell's, or that of a part of the screen."""
        fill = Style(color=self.on_fill, bgcolor=self.filtered, bold=True)
        return {
            "": Style(),
            "primary": Style(color=self.primary),
            "promoted": Style(color=self.promoted),
            "filtered": fill,
            "absent": Style(color=self.absent),
            "denied": Style(color=self.denied),
            "failed": Style(color=self.failed, bold=True),
            "held": Style(color=self.held),
            "gave_up": Style(color=self.gave_up),
            "unreached": Style(color=self.unreached),
            "holds": Style(color=self.muted),
            "holds_skipped": Style(color=self.filtered),
            "skipped": Style(color=self.unreached),
            "retry": Style(color=self.gave_up),
            "pending": Style(color=self.held),
            "text": Style(color=self.text),
            "bold": Style(color=self.text, bold=True),
            "muted": Style(color=self.muted),
            "rule": Style(color=self.rule),
            "title": Style(color=self.text, bold=True),
            "title_focus": Style(color=self.accent, bold=True),
            "rule_focus": Style(color=self.accent, bold=True),
            "key": Style(color=self.accent, bold=True),
            "good": Style(color=self.promoted),
            "good_bold": Style(color=self.promoted, bold=True),
            "badge": Style(color=self.on_fill, bgcolor=self.accent, bold=True),
            "badge_plain": Style(color=self.background if self.dark else self.panel, bgcolor=self.text, bold=True),
            "alarm": Style(color=self.filtered, bold=True),
            "alarm_plain": Style(color=self.filtered),
            "bad": Style(color=self.failed, bold=True),
            "bad_fill": Style(color=self.on_fill, bgcolor=self.failed, bold=True),
            "ahead": Style(color=self.rule if self.dark else self.unreached),
            "equal": Style(color=self.muted),
            "selected": Style(color=self.text, bold=True),
        }

    @cached_property
    def cursor_style(self) -> Style:
        """The background under the cursor, and nothing else."""
        return Style(reverse=True) if self.is_terminal else Style(bgcolor=self.cursor)


DARK: Final = Palette(
    "dark",
    True,
    background="#0E1217",
    panel="#1A222C",
    text="#E8ECF1",
    muted="#8A939E",
    rule="#4A535E",
    accent="#6CA8FF",
    cursor="#3D4A61",
    on_fill="#0E1217",
    primary="#3D85FF",
    promoted="#27C77C",
    filtered="#FFB000",
    absent="#C1C6CC",
    denied="#DE5FC3",
    failed="#FF5A4A",
    held="#CF9BFA",
    gave_up="#E8DC78",
    unreached="#69717A",
)

LIGHT: Final = Palette(
    "light",
    False,
    background="#FBFBF9",
    panel="#EAEAE8",
    text="#15181C",
    muted="#5D6670",
    rule="#B9BFC6",
    accent="#0B57B5",
    cursor="#C9DAF0",
    on_fill="#FFFFFF",
    primary="#084AC8",
    promoted="#0F7A47",
    filtered="#AD5A00",
    absent="#424649",
    denied="#86207F",
    failed="#B3160F",
    held="#6E4EB3",
    gave_up="#4A3D00",
    unreached="#7A858E",
)

COLOUR_BLIND: Final = Palette(
    "colour-blind",
    True,
    background="#101010",
    panel="#202224",
    text="#ECECEC",
    muted="#909497",
    rule="#505356",
    accent="#7FB2FF",
    cursor="#43474D",
    on_fill="#101010",
    primary="#3475FE",
    promoted="#13BC6C",
    filtered="#F0A500",
    absent="#BDC1C4",
    denied="#D54BBB",
    failed="#F6362F",
    held="#D7A5FE",
    gave_up="#E6DB77",
    unreached="#6D6E6E",
)

TERMINAL: Final = Palette(
    "terminal",
    True,
    background="default",
    panel="default",
    text="default",
    muted="bright_black",
    rule="bright_black",
    accent="bright_blue",
    cursor="default",
    on_fill="black",
    primary="bright_blue",
    promoted="green",
    filtered="yellow",
    absent="default",
    denied="bright_magenta",
    failed="bright_red",
    held="magenta",
    gave_up="bright_yellow",
    unreached="bright_black",
)

PALETTES: Final = {palette.name: palette for palette in (DARK, LIGHT, COLOUR_BLIND, TERMINAL)}
DEFAULT: Final = DARK.name

VARIABLES: Final = ("kvtier-rule", "kvtier-muted", "kvtier-cursor", "kvtier-alarm", "kvtier-bad", "kvtier-accent")


def variables(palette: Palette) -> dict[str, str]:
    """The colours that the style sheet asks for by name."""
    values = (palette.rule, palette.muted, palette.cursor, palette.filtered, palette.failed, palette.accent)
    return {name: _css(value) for name, value in zip(VARIABLES, values, strict=True)}


def theme(palette: Palette) -> Theme:
    """The theme that Textual draws its own widgets with."""
    return Theme(
        name=f"kvtier-{palette.name}",
        primary=_css(palette.accent),
        secondary=_css(palette.primary),
        warning=_css(palette.filtered),
        error=_css(palette.failed),
        success=_css(palette.promoted),
        accent=_css(palette.accent),
        foreground=_css(palette.text),
        background=_css(palette.background),
        surface=_css(palette.background),
        panel=_css(palette.panel),
        boost=_css(palette.panel),
        dark=palette.dark,
        ansi=palette.is_terminal,
        variables={
            # Textual's own style sheets ask for more names where the colours are the terminal's.
            **(BUILTIN_THEMES["ansi-dark"].variables if palette.is_terminal else {}),
            **variables(palette),
            "block-cursor-background": _css("white" if palette.is_terminal else palette.cursor),
            "block-cursor-foreground": _css("black" if palette.is_terminal else palette.text),
        },
    )


def _css(color: str) -> str:
    return color if color.startswith("#") else f"ansi_{color}"
