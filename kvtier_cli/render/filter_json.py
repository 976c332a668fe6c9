"""A filter as vLLM reads it, for `--json`; `lookup`, `replay` and others state theirs with the same parts."""

from __future__ import annotations

from typing import Any

from kvtier_cli.tiering.filter_lint import suggest
from kvtier_cli.tiering.filter_model import WARNING_CODES
from kvtier_cli.tiering.filter_reasons import PRIMARY_REASON, tier_reason
from kvtier_cli.tiering.filters import FilterParse, Note, TierMatcher
from kvtier_cli.tiering.model import Medium
from kvtier_cli.tiering.topology import PRIMARY_NAME, Tiers


def filter_document(parse: FilterParse, topology: Tiers, form: str) -> dict[str, Any]:
    """The body of `kvtier filter --json`."""
    return {
        "form": form,
        **filter_as_json(parse),
        "faults": len(parse.faults()),
        "entries": entries_as_json(parse),
        "topology": topology.name,
        "tiers": tiers_as_json(parse, topology),
        "suggestion": suggest(parse),
    }


def filter_as_json(parse: FilterParse) -> dict[str, Any]:
    """`effective`, `fails_open`, `warnings` (as many as vLLM logs) and `lint`, as in every command's document."""
    return {
        "effective": parse.filter.as_json(),
        "fails_open": parse.fails_open,
        "warnings": [_note_as_json(note) for note in parse.warnings],
        "lint": [_note_as_json(note) for note in parse.lint],
    }


def entries_as_json(parse: FilterParse) -> list[dict[str, Any]]:
    """A row an entry: whether it is kept, its sides, vLLM's warning (None: it has none) and our lint."""
    warnings = {note.index: note.message for note in parse.warnings}
    lint = parse.notes_by_entry
    return [
        {
            "index": entry.index,
            "kept": entry.kept,
            **(entry.matcher or TierMatcher()).as_json(),
            "warning": warnings.get(entry.index),
            "lint": [_note_as_json(note) for note in lint.get(entry.index, ()) if note.code not in WARNING_CODES],
        }
        for entry in parse.entries
    ]


def tiers_as_json(parse: FilterParse, topology: Tiers) -> list[dict[str, Any]]:
    """A row a tier, the primary first: whether the filter admits it, and why (or why not)."""
    primary = {
        "name": PRIMARY_NAME,
        "role": "primary",
        "medium": Medium.CPU.value,
        "locality": None,
        "admitted": True,
        "why": PRIMARY_REASON,
    }
    return [primary] + [
        {
            "name": tier.name,
            "role": "secondary",
            "medium": tier.medium.value if tier.medium else None,
            "locality": tier.locality.value if tier.locality else None,
            "admitted": parse.filter.admits(tier.medium, tier.locality),
            "why": tier_reason(parse, tier),
        }
        for tier in topology.tiers
    ]


def _note_as_json(note: Note) -> dict[str, Any]:
    return {
        "index": note.index,
        "code": note.code,
        "message": note.message,
        "hint": note.hint,
        "fault": note.is_fault,
    }
