"""The manager's events under the names and in the shape in which a vLLM 0.33 server publishes them."""

from __future__ import annotations

import msgspec
import pytest

from kvtier_cli.tiering.kv_events import kv_events, wire_hash
from kvtier_cli.tiering.model import BlockKey, Locality, Medium, OffloadingEvent

HASHES = {"b1": 7, "b2": 8, "b1@1": 9}


def published(*events: OffloadingEvent) -> list[dict[str, object]]:
    return kv_events(events, lambda key: HASHES[str(key)])


def stored(medium: Medium, locality: Locality | None, *keys: BlockKey) -> OffloadingEvent:
    return OffloadingEvent(medium, locality, False, keys)


def removed(*keys: BlockKey, locality: Locality | None = None) -> OffloadingEvent:
    return OffloadingEvent(Medium.CPU, locality, True, keys)


def test_a_stored_block_is_a_placeholder_with_the_keys_in_vllms_order() -> None:
    (event,) = published(stored(Medium.STORAGE, Locality.LOCAL, "b1"))
    assert list(event.items()) == [
        ("type", "BlockStored"),
        ("block_hashes", [7]),
        ("parent_block_hash", None),
        ("token_ids", []),
        ("block_size", 0),
        ("lora_id", None),
        ("medium", "STORAGE"),
        ("lora_name", None),
        ("group_idx", 0),
        ("locality", "LOCAL"),
    ]


# msgspec writes these maps with the shortest header, vLLM's structs with one of two bytes: `8a` here is `de000a` there.
RECORDED = [
    (
        stored(Medium.STORAGE, Locality.LOCAL, "b1"),
        "8aa474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739107b1706172656e745f626c6f636b5f68617368c0a974"
        "6f6b656e5f69647390aa626c6f636b5f73697a6500a76c6f72615f6964c0a66d656469756da753544f52414745a96c6f72615f6e616d"
        "65c0a967726f75705f69647800a86c6f63616c697479a54c4f43414c",
    ),
    (
        removed("b1", "b2"),
        "84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573920708a66d656469756da3435055a967726f75705f69"
        "647800",
    ),
]


@pytest.mark.parametrize(("event", "wire"), RECORDED)
def test_an_event_packs_into_the_bytes_that_a_server_sent(event: OffloadingEvent, wire: str) -> None:
    (found,) = published(event)
    assert msgspec.msgpack.encode(found).hex() == wire


def test_each_stored_block_has_an_event_of_its_own_and_an_eviction_has_one_for_all() -> None:
    events = published(removed("b1", "b2"), stored(Medium.CPU, None, "b2", "b1"))
    assert [(event["type"], event["block_hashes"]) for event in events] == [
        ("BlockRemoved", [7, 8]),
        ("BlockStored", [8]),
        ("BlockStored", [7]),
    ]


def test_the_media_have_their_names_on_the_wire() -> None:
    events = published(stored(Medium.CPU, None, "b1"), stored(Medium.STORAGE, None, "b1"), removed("b1"))
    assert [event["medium"] for event in events] == ["CPU", "STORAGE", "CPU"]


def test_a_locality_is_there_only_where_the_tier_declares_one() -> None:
    events = published(
        stored(Medium.STORAGE, None, "b1"),
        stored(Medium.STORAGE, Locality.REMOTE, "b1"),
        removed("b1"),
        removed("b1", locality=Locality.LOCAL),
    )
    assert [event.get("locality", "(absent)") for event in events] == ["(absent)", "REMOTE", "(absent)", "LOCAL"]


def test_a_block_of_another_kv_group_says_so_and_an_eviction_is_told_by_group() -> None:
    (event,) = published(stored(Medium.CPU, None, "b1@1"))
    assert (event["block_hashes"], event["group_idx"]) == ([9], 1)
    evicted = published(removed("b1", "b1@1", "b2"))
    assert [(event["block_hashes"], event["group_idx"]) for event in evicted] == [([7, 8], 0), ([9], 1)]


def test_a_hash_on_the_wire_is_the_end_of_the_digest_as_an_unsigned_number() -> None:
    assert wire_hash(bytes(24) + b"\xff" * 8) == 2**64 - 1
    assert wire_hash(b"\xff" * 24 + bytes(7) + b"\x07") == 7
    assert wire_hash(bytes.fromhex("00" * 24 + "0102030405060708")) == 0x0102030405060708


def test_nothing_happened_is_nothing_published() -> None:
    assert published() == []
