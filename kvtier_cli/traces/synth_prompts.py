"""Prompts as ids of blocks: what they share, how they grow turn by turn, and the texts that tenants have. No times.

An id is handed out once, counted up in order of first use, and stands for its block and all in front of it: the same
trace whether blocks are told by their ids or by their chains.
"""

from __future__ import annotations

from kvtier_cli.traces.synth_draws import Draws, Popularity
from kvtier_cli.traces.synth_kinds import DOCUMENTS, REWRITTEN_AFTER, Kind


class Ids:
    """The ids not handed out yet."""

    __slots__ = ("block_tokens", "next")

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.next = 0

    def extend(self, ids: list[int], tokens: int) -> None:
        """Makes `ids`, the whole blocks at the start of a prompt, those of its first `tokens` tokens."""
        first = self.next
        self.next = first + max(0, tokens // self.block_tokens - len(ids))
        ids += range(first, self.next)


class Shared:
    """A text at the start of many prompts: behind `front`, another such text, and `tokens` long together with it.

    Of its blocks only where they begin is kept: a collection may have millions.
    """

    __slots__ = ("_count", "_first", "_front", "tokens")

    def __init__(self, ids: Ids, tokens: int, front: Shared | None = None) -> None:
        self._front = front
        self._first = ids.next
        before = 0 if front is None else front.tokens
        self.tokens: int = tokens + before
        before //= ids.block_tokens
        self._count = self.tokens // ids.block_tokens - before
        ids.next += self._count

    def blocks(self) -> list[int]:
        """The whole blocks, a list of the caller's own."""
        ids = [] if self._front is None else self._front.blocks()
        ids += range(self._first, self._first + self._count)
        return ids


class Prompt:
    """The prompt of a session: its whole blocks so far, and its length in tokens with the answers in it."""

    __slots__ = ("_blocks", "tokens")

    def __init__(self, blocks: list[int], tokens: int) -> None:
        self._blocks = blocks
        self.tokens = tokens

    def ask(self, tokens: int, ids: Ids) -> list[int]:
        """The ids of the prompt with `tokens` more. The partly filled last block has an id that no later prompt has:
        then the answer stands in its place."""
        self.tokens += tokens
        blocks = self._blocks
        ids.extend(blocks, self.tokens)
        if self.tokens % ids.block_tokens:
            ids.next += 1
            return [*blocks, ids.next - 1]
        return blocks.copy()

    def fork(self) -> Prompt:
        """A prompt of its own that starts as this one does, up to its last question."""
        return Prompt(self._blocks.copy(), self.tokens)


class Library:
    """The texts that a tenant's sessions of one kind have in common; each comes to be when it is first used."""

    def __init__(self, kind: Kind, draws: Draws, ids: Ids, assistants: Popularity, documents: Popularity) -> None:
        self._kind, self._draws, self._ids = kind, draws, ids
        self._assistants, self._documents = assistants, documents
        self._systems: dict[int, Shared] = {}
        self._texts: dict[tuple[int, int], Shared] = {}

    def start(self) -> Prompt:
        """A new session's prompt, before its first question."""
        kind, draws = self._kind, self._draws
        number = self._assistants.draw(draws)
        text = self._systems.get(number)
        if text is None:
            text = self._systems[number] = Shared(self._ids, draws.size(kind.system))
        if kind.document:
            text = self._document(number, text)
        return Prompt(text.blocks(), text.tokens)

    def _document(self, system: int, front: Shared) -> Shared:
        """A document behind the system prompt `front`, the `system`-th. Now and then it has been rewritten."""
        draws = self._draws
        key = system, self._documents.draw(draws)
        text = self._texts.get(key)
        if text is None or not draws.below(REWRITTEN_AFTER):
            text = self._texts[key] = Shared(self._ids, draws.size(self._kind.document), front)
        return text


class Libraries:
    """All tenants' libraries, by tenant and kind."""

    def __init__(self, draws: Draws, ids: Ids) -> None:
        self._draws, self._ids = draws, ids
        self._found: dict[tuple[int, int], Library] = {}
        self._assistants: dict[int, Popularity] = {}
        self._documents = Popularity(DOCUMENTS)

    def of(self, tenant: int, kind: Kind) -> Library:
        """The library of a tenant for one kind of sessions."""
        key = tenant, id(kind)
        library = self._found.get(key)
        if library is None:
            assistants = self._assistants.setdefault(kind.assistants, Popularity(kind.assistants))
            library = self._found[key] = Library(kind, self._draws, self._ids, assistants, self._documents)
        return library
