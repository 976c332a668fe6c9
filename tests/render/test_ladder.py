"""The ladder and the rows of a story: what stands where, at any width, whatever the tiers are called."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.render.console import Output, cell_width
from kvtier_cli.render.ladder import ladder_lines
from kvtier_cli.render.story_rows import row_lines
from kvtier_cli.render.story_view import story_lines
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.topology import TierSpec
from tests.replay.stories import server
from tests.tiering.managers import NVME, PEER, S3

LOCAL = [{"medium": "storage", "locality": "local"}]
NUMBERED = [f"b{number}" for number in range(1000)]


def story_of(blocks: int, *, nvme: str = "", s3: str = "", names: tuple[str, str] = ("nvme", "s3")) -> RequestStory:
    """A prompt of b0, b1, … of which `nvme` and the skipped `s3` hold those given as `from-to`, ends included."""
    tiers = (replace(NVME, name=names[0]), replace(S3, name=names[1]), PEER)
    seeds = {names[0]: _span(nvme), names[1]: _span(s3)}
    return server(blocks, *tiers, seeds=seeds).story(" ".join(NUMBERED[:blocks]), LOCAL)


def _span(span: str) -> str:
    first, _, last = span.partition("-")
    return " ".join(NUMBERED[int(first) : int(last) + 1]) if span else ""


def drawn(story: RequestStory, width: int, **how: bool) -> str:
    return "\n".join(ladder_lines(story, Output(width=width, **how)))


def test_a_column_is_a_block_and_a_row_a_tier_with_a_gap_after_every_ten() -> None:
    assert drawn(story_of(23, nvme="0-10", s3="11-20"), 80) == (
        " tier   declared         filter     0          10         20\n"
        " cpu    primary          always     □□□□□□□□□□ □□\n"
        " nvme   storage local    admitted   ▲▲▲▲▲▲▲▲▲▲ ▲□\n"
        " s3     storage remote   SKIPPED                Ø•••••••• •\n"
        " peer   –                admitted               □\n"
        " =      outcome                     ▲▲▲▲▲▲▲▲▲▲ ▲Ø········ ···"
    )


def test_what_does_not_fit_goes_on_in_bands_of_tens_without_their_empty_rows() -> None:
    assert drawn(story_of(23, nvme="0-10", s3="11-20"), 40, unicode=False) == (
        " tier  filter    0          10\n"
        " cpu   always    oooooooooo oo\n"
        " nvme  admitted  ^^^^^^^^^^ ^o\n"
        " s3    SKIPPED               %++++++++\n"
        " peer  admitted              o\n"
        " =     outcome   ^^^^^^^^^^ ^%........\n"
        "\n"
        "                 20\n"
        " s3              +\n"
        " =               ..."
    )


def test_a_long_end_that_is_the_same_over_and_over_is_told_in_a_line() -> None:
    lines = drawn(story_of(1000, nvme="0-10"), 80).splitlines()
    assert lines[-6:] == [
        " =                                  ·········· ·········· ·········· ··········",
        "",
        " blocks 80 to 959: as above",
        "",
        "                                    960        970        980        990",
        " =                                  ·········· ·········· ·········· ··········",
    ]
    assert len(lines) == 14


@pytest.mark.parametrize("unicode", [True, False])
@given(st.integers(0, 260), st.integers(40, 300), st.integers(0, 60), st.integers(0, 60))
def test_every_block_has_its_cell_in_every_width(
    unicode: bool, blocks: int, width: int, local: int, remote: int
) -> None:
    nvme = f"0-{local - 1}" if local else ""
    s3 = f"{local}-{local + remote}" if remote else ""
    story = story_of(blocks, nvme=nvme, s3=s3)
    lines = list(ladder_lines(story, Output(width=width, unicode=unicode)))
    assert max(map(cell_width, lines)) <= width
    assert not any(line.endswith(" ") for line in lines)
    outcome = "".join(line.removeprefix(" =").replace("outcome", "") for line in lines if line.startswith(" ="))
    told = [re.findall(r"[\d,]+", line) for line in lines if line.endswith(": as above")]
    skipped = sum(int(last) - int(first) + 1 for first, last in told)
    assert len(re.sub(r"\s", "", outcome)) == blocks - skipped


@pytest.mark.parametrize(
    "name",
    ["[red]", "[/]", "\x1b[31m", "漢字漢字", "שלום", "a\nb", "\u202e\u200b", "🔑", "e\u0301", "x" * 300, "漢" * 300],
)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_tier_may_have_any_name_and_the_columns_line_up(name: str, width: int) -> None:
    story = story_of(9, nvme="0-4", s3="5-8", names=(name, "s3"))
    _, cpu, tier, skipped, *_ = ladder_lines(story, Output(width=width))
    at = cell_width(cpu.partition("□")[0])
    assert cell_width(tier.partition("▲")[0]) == at
    assert cell_width(skipped.partition("Ø")[0]) == at + 5
    assert not any(ord(char) < 32 or char in "\u202e\u200b" for char in tier)
    assert cell_width(tier) <= width


def test_colours_are_beside_the_symbols_and_change_no_column() -> None:
    story = story_of(23, nvme="0-10", s3="11-20")
    coloured = drawn(story, 80, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == drawn(story, 80)
    assert "\x1b[32m▲▲▲▲▲▲▲▲▲▲\x1b[0m" in coloured, "one code for a run"
    assert "\x1b[1;7;33mØ\x1b[0m\x1b[33m••••••••\x1b[0m" in coloured, "what a skipped tier holds leads the eye"
    assert "\x1b[1;7;33mSKIPPED\x1b[0m" in coloured


def rows_of(story: RequestStory, width: int, **how: bool) -> str:
    return "\n".join(row_lines(story, Output(width=width), str, **how))


def test_rows_tell_the_reason_beside_each_block() -> None:
    assert rows_of(story_of(4, nvme="0-0", s3="1-2"), 80) == (
        "  #  block  cpu  nvme  s3  peer  outcome    why\n"
        "  0  b0      □    ▲    ·    ·    promoted   from nvme, 1 step\n"
        "  1  b1      □    □    Ø    □    filtered   s3 holds it; its locality REMOTE\n"
        "                                            matches no entry\n"
        "  2  b2      ·    ·    •    ·    unreached  behind block 1 (s3 holds it)\n"
        "  3  b3      ·    ·    ·    ·    unreached  behind block 1 (not stored)"
    )


def test_narrow_rows_have_those_reasons_below_that_the_symbols_do_not_tell() -> None:
    assert rows_of(story_of(4, nvme="0-0", s3="1-2"), 50) == (
        "  #  block  cpu  nvme  s3  peer  outcome\n"
        "  0  b0      □    ▲    ·    ·    promoted\n"
        "     from nvme, 1 step\n"
        "  1  b1      □    □    Ø    □    filtered\n"
        "     s3 holds it; its locality REMOTE matches no\n"
        "     entry\n"
        "  2  b2      ·    ·    •    ·    unreached\n"
        "  3  b3      ·    ·    ·    ·    unreached"
    )


def test_more_tiers_than_have_room_stand_side_by_side() -> None:
    tiers = [TierSpec(f"tier-{number}") for number in range(9)]
    story = server(4, *tiers, seeds={"tier-8": "b1"}).story("b1 b2")
    assert rows_of(story, 40).startswith(
        "  tiers from left to right: cpu, tier-0,\n"
        "  tier-1, tier-2, tier-3, tier-4,\n"
        "  tier-5, tier-6, tier-7, tier-8\n"
        "\n"
        "  #  block  tiers       outcome\n"
        "  0  b1     □□□□□□□□□▲  promoted\n"
    )


def test_long_ids_are_shortened_unless_they_are_wanted_whole() -> None:
    name = "sha256:" + "0123456789abcdef" * 4
    story = server(4, NVME).story(name)
    assert "sha256:012…789abcdef " in rows_of(story, 80)
    assert name in rows_of(story, 200, wide=True)


@pytest.mark.parametrize(("blocks", "rows", "table"), [(10, False, True), (11, False, False), (11, True, True)])
def test_up_to_ten_blocks_have_a_row_each(blocks: int, rows: bool, table: bool) -> None:
    lines = list(story_lines(story_of(blocks), Output(), rows=rows))
    assert any(line.lstrip().startswith("#  block") for line in lines) == table


def test_the_legend_tells_the_symbols_that_occur_and_no_others() -> None:
    def legend(story: RequestStory) -> str:
        lines = list(story_lines(story, Output(width=200)))
        return lines[-3]

    assert legend(story_of(12, nvme="0-11")) == " ▲ promoted  □ miss"
    assert legend(story_of(12)) == " □ absent  · unreached  - skipped"
    assert legend(story_of(12, nvme="0-2", s3="3-5")) == (
        " ▲ promoted  Ø filtered  □ miss  · unreached  • holds it, not asked"
    )
    assert legend(story_of(12, nvme="0-2")) == " ▲ promoted  □ absent, miss  · unreached  - skipped"
    assert legend(story_of(2, nvme="0-1")) == " ▲ promoted  □ miss  · not reached"


def test_names_of_tiers_are_whole_if_they_are_wanted_so() -> None:
    story = story_of(12, nvme="0-11", names=("n" * 30, "s3"))
    assert "n" * 30 not in drawn(story, 80)
    assert "n" * 30 + "   storage local" in "\n".join(ladder_lines(story, Output(width=120), wide=True))
