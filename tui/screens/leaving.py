"""A screen that is left once, however often it is told to."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Answer = TypeVar("Answer")


class LeftOnce(Screen[Answer], Generic[Answer]):
    """Goes when it is dismissed first. A key that was on its way then would take the screen below with it.

    To be named behind a class of Textual's, which looks for styles only along the first base.
    """

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        if self.app.screen_stack[-1:] != [self]:
            return AwaitComplete()
        return super().dismiss(result)
