"""What holds for every command line: version, help, wrong command lines, shared options, errors and their statuses."""

from __future__ import annotations

import errno

import pytest
import typer

from kvtier_cli import __version__, main
from kvtier_cli.commands import lazy, options
from kvtier_cli.errors import EnvironmentFault, ExitStatus, InputError, KvtierError, ManagerError
from tests.conftest import Ran, RunsKvtier

ESC = "\x1b"


# --- version and help ---


@pytest.mark.parametrize("args", [["--version"], ["-V"], ["--json", "--version"]])
def test_version_is_one_line_and_nothing_else(kvtier: RunsKvtier, args: list[str]) -> None:
    assert kvtier(*args) == Ran(f"kvtier {__version__}\n", "", 0)


@pytest.mark.parametrize("args", [[], ["-h"], ["--help"]])
def test_without_a_command_the_help_is_printed_and_that_is_no_error(kvtier: RunsKvtier, args: list[str]) -> None:
    ran = kvtier(*args)
    assert (ran.stderr, ran.status) == ("", 0)
    assert ran.stdout.startswith("Usage: kvtier [OPTIONS] COMMAND")
    for name, (_, text) in main.COMMANDS.items():
        assert f"  {name} " in ran.stdout
        assert text in ran.stdout, "the line of each command fits 80 columns unbroken"
    assert "130  interrupted" in ran.stdout


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_listed_command_has_help_with_an_example(kvtier: RunsKvtier, name: str) -> None:
    ran = kvtier(name, "--help")
    assert (ran.stderr, ran.status) == ("", 0)
    assert f"kvtier {name}" in ran.stdout.partition("Examples:")[2]
    assert max(len(line) for line in ran.stdout.splitlines()) <= 80


def test_the_usage_names_required_arguments_plainly(probe: RunsKvtier) -> None:
    assert probe("probe", "-h").stdout.lower().startswith("usage: kvtier probe [options] what\n")


def test_examples_are_shown_as_written(probe: RunsKvtier) -> None:
    assert "  Examples:\n    kvtier probe one\n    kvtier probe 'two  blanks'\n" in probe("probe", "--help").stdout


def test_completion_offers_the_commands(kvtier: RunsKvtier) -> None:
    asked = {"_KVTIER_COMPLETE": "complete_bash", "COMP_WORDS": "kvtier f", "COMP_CWORD": "1"}
    ran = kvtier(env=asked)
    assert (ran.stdout.split(), ran.stderr, ran.status) == (["filter"], "", 0)


# --- wrong command lines ---


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["prob"], 'error: kvtier has no command "prob". Did you mean "probe"?'),
        (["zzzz"], 'error: kvtier has no command "zzzz".'),
        (["pair", "chek"], 'error: kvtier pair has no command "chek". Did you mean "check"?'),
        (["--jsno", "probe"], 'error: kvtier has no option "--jsno". Did you mean "--json"?'),
        (["probe", "show", "--nubmer=3"], 'error: kvtier probe has no option "--nubmer". Did you mean "--number"?'),
        (["probe", "show", "-z"], 'error: kvtier probe has no option "-z".'),
        (["probe"], "error: missing argument 'what'"),
        (["probe", "show", "more"], "error: got unexpected extra argument(s) (more)"),
        (["probe", "show", "-n", "x"], "error: invalid value for '--number' / '-n': 'x' is not a valid int"),
        (["pair", "check"], "error: missing argument 'name'"),
    ],
)
def test_a_wrong_command_line_is_told_in_two_lines(probe: RunsKvtier, args: list[str], said: str) -> None:
    ran = probe(*args)
    first, second = ran.stderr.splitlines()
    assert first.lower().startswith(said.lower()), "typer's own words differ a little between its versions"
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT)
    assert second.startswith("       kvtier")
    assert "--help" in second


@pytest.mark.parametrize("option", [["--number"], ["--verbose=3"], ["--nubmer"]])
def test_the_help_that_is_named_is_the_command_s_own(probe: RunsKvtier, option: list[str]) -> None:
    said = probe("probe", "show", *option).stderr
    assert said.endswith("\n       kvtier probe --help shows how it is used.\n")


def test_subcommands_alone_print_their_help(probe: RunsKvtier) -> None:
    ran = probe("pair")
    assert (ran.stderr, ran.status) == ("", 0)
    assert "show   Shows." in ran.stdout


@pytest.mark.parametrize("text", [f"{ESC}[31mred", "two\nlines", "\u202eright to left", "nul-\x07"])
def test_what_was_typed_is_repeated_inert(probe: RunsKvtier, text: str) -> None:
    ran = probe(text)
    assert ran.stderr.count("\n") == 2
    assert not any(char in ran.stderr for char in "\x1b\x07\u202e")


# --- shared options ---


@pytest.mark.parametrize(
    ("args", "given"),
    [
        (["probe", "show"], options.Shared()),
        (["probe", "show", "--json"], options.Shared(json=True)),
        (["--json", "probe", "show"], options.Shared(json=True)),
        (["-v", "probe", "-v", "show", "-q"], options.Shared(verbose=2, quiet=True)),
        (["probe", "show", "-vv", "--no-color", "--ascii"], options.Shared(verbose=2, no_color=True, ascii=True)),
        (["probe", "--no-progress", "show", "--debug"], options.Shared(no_progress=True, debug=True)),
    ],
)
def test_shared_options_count_before_and_after_the_command(
    probe: RunsKvtier, args: list[str], given: options.Shared
) -> None:
    assert probe(*args).stdout == f"{given} 0\n"


def test_shared_options_reach_subcommands(probe: RunsKvtier) -> None:
    expected = f"{options.Shared(json=True, quiet=True, verbose=1)}\n"
    assert probe("--json", "pair", "-q", "show", "-v").stdout == expected


def test_every_command_tells_of_the_shared_options_in_the_same_words(probe: RunsKvtier) -> None:
    lines = [line for line in probe("--help").stdout.splitlines() if line.startswith(("  --", "  -q", "  -v"))]
    shared = [line.split("  ")[-1] for line in lines if "completion" not in line]
    assert len(shared) == 7
    for command in (["probe"], ["pair", "show"]):
        text = probe(*command, "--help").stdout
        assert all(line in text for line in shared)


def test_a_shared_option_that_makes_no_sense_for_a_command_is_left_out(probe: RunsKvtier) -> None:
    assert "--no-progress" not in probe("pair", "--help").stdout


# --- errors and their statuses ---


@pytest.mark.parametrize(
    ("error", "status", "lines"),
    [
        (
            InputError("not JSON", file="t.jsonl", line=1187, column=63, hint="Continue with --skip-bad."),
            2,
            ["error: t.jsonl:1187:63: not JSON", "       Continue with --skip-bad."],
        ),
        (
            InputError("not a block", file="t.jsonl", line=3, path="$.hash_ids[1]"),
            2,
            ["error: t.jsonl:3: $.hash_ids[1]: not a block"],
        ),
        (EnvironmentFault("the workspace is in use"), 3, ["error: the workspace is in use"]),
        (ManagerError("lookup of an unknown request"), 70, ["error: lookup of an unknown request"]),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "a.jsonl"),
            2,
            ["error: a.jsonl: no such file or directory"],
        ),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "traces"), 2, ["error: traces: is a directory"]),
        (PermissionError(errno.EACCES, "Permission denied", b"a.jsonl"), 2, ["error: a.jsonl: permission denied"]),
        (OSError(errno.ENOSPC, "No space left on device", "out"), 3, ["error: out: no space left on device"]),
        (OSError(errno.EROFS, "Read-only file system"), 3, ["error: reading or writing failed: read-only file system"]),
        (MemoryError(), 3, ["error: out of memory"]),
        (
            ModuleNotFoundError("No module named 'zmq'", name="zmq"),
            3,
            ['error: the Python package "zmq" is not installed', "       Install kvtier again."],
        ),
        (KeyError("b1"), 70, ["error: a fault of kvtier: KeyError: 'b1' (--debug shows the traceback)"]),
        (ZeroDivisionError(), 70, ["error: a fault of kvtier: ZeroDivisionError (--debug shows the traceback)"]),
        (KeyboardInterrupt(), 130, ["interrupted"]),
        (typer.Abort(), 130, ["interrupted"]),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, []),
        (typer.Exit(1), 1, []),
        (InputError(f"block {ESC}[2J"), 2, ["error: block \\x1b[2J"]),
    ],
)
def test_each_failure_has_its_status_and_its_lines(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    lines: list[str],
) -> None:
    def fail(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(main, "_run", fail)
    assert main.main([]) == status
    streams = capsys.readouterr()
    assert (streams.err.splitlines(), streams.out) == (lines, "")


def test_a_no_is_status_1_without_a_message(probe: RunsKvtier) -> None:
    assert probe("probe", "no") == Ran("", "", ExitStatus.NO)


def test_errors_under_json_are_text_and_leave_stdout_empty(probe: RunsKvtier) -> None:
    assert probe("probe", "wrong-input", "--json") == Ran("", "error: wrong\n", 2)


@pytest.mark.parametrize(("args", "env"), [(["--debug"], {}), ([], {"KVTIER_DEBUG": "1"})])
def test_debug_shows_the_traceback_before_the_message(probe: RunsKvtier, args: list[str], env: dict[str, str]) -> None:
    ran = probe("probe", "fault", *args, env=env)
    assert ran.stderr.startswith("Traceback (most recent call last):")
    assert ran.stderr.splitlines()[-1].startswith("error: a fault of kvtier: KeyError: 'b1'")
    assert ran.status == ExitStatus.FAULT


def test_debug_behind_two_dashes_is_an_argument(probe: RunsKvtier) -> None:
    assert "Traceback" not in probe("probe", "fault", "--", "--debug").stderr


def test_a_hint_follows_on_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str]) -> int:
        raise KvtierError("went wrong", hint="try\nthat")

    monkeypatch.setattr(main, "_run", fail)
    assert main.main([]) == ExitStatus.FAULT
    assert capsys.readouterr().err == "error: went wrong\n       try\\nthat\n"


# --- the table of commands ---


def test_the_table_names_commands_that_can_be_loaded() -> None:
    for name, (module, text) in main.COMMANDS.items():
        command = lazy.load(name, module)
        assert command.name == name
        assert command.help, f"{name} needs a docstring or a help"
        assert text.endswith(".")
        assert command.callback is not None or isinstance(command, lazy.CommandGroup)
