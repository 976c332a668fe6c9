"""The entry point of `kvtier`: its commands, and the one place where errors become messages and exit statuses.

At its top stands only what Python has loaded anyway: `--version` answers before typer is imported, and the module of a
command is imported when it runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing's, whose import costs half as much as a bare Python start
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvtier_cli.errors import KvtierError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("kvtier_cli.commands.demo", "A two-minute tour on a shipped trace, and what to try next."),
    "filter": ("kvtier_cli.commands.filter", "What vLLM makes of a filter, and which tiers it admits."),
    "lookup": ("kvtier_cli.commands.lookup", "Which of a request's blocks are served, from where, why not."),
    "replay": ("kvtier_cli.commands.replay", "Replay traces or fixtures: what is served, from where, why not."),
    "explain": ("kvtier_cli.commands.explain", "One request's whole story; the life of one of its blocks."),
    "compare": ("kvtier_cli.commands.compare", "Two to six filters, tiers or policies over one trace."),
    "dash": ("kvtier_cli.commands.dash", "The dashboard: watch a replay, step, seek, change the filter."),
    "init": ("kvtier_cli.commands.init", "Make a workspace: tiers that outlive the command."),
    "load": ("kvtier_cli.commands.load", "Replay traces into the workspace; its tiers are real stores."),
    "tiers": ("kvtier_cli.commands.tiers", "What each tier of the workspace holds; faults on demand."),
    "blocks": ("kvtier_cli.commands.blocks", "The blocks of the workspace, and which tiers have them."),
    "synth": ("kvtier_cli.commands.synth", "Make a realistic trace of any size from a seed."),
    "convert": ("kvtier_cli.commands.convert", "Write a trace in another format, and tell what is lost."),
    "topology": ("kvtier_cli.commands.topology", "The tiers in force: show them, check them, import vLLM's."),
    "doctor": ("kvtier_cli.commands.doctor", "The installation and the workspace: versions, lock, integrity."),
}
"""Command → (its module, the line in `kvtier --help`), in the order of the help."""

HELP = "The debugger for tiered KV caches: which tiers a block's lookup skipped, asked, hit or was denied, and why."

EPILOG = """\b
Exit status:
  0  done            2  the input or the command line is wrong
  1  the answer is   3  the environment is: not writable, full, in use
     "no"           70  a fault of kvtier     130  interrupted
"""

_COMPLETE = "_KVTIER_COMPLETE"
_INPUT_ERRNOS = ("ENOENT", "EISDIR", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENAMETOOLONG")


def program() -> int:
    """`kvtier` as a process of its own: `main`, quick to start and to end.

    Python looks for cycles more rarely, which is often while it imports. And it does not take down all modules when
    everything is said: exit functions run in the reverse of their order, so those that were registered since the start
    have run when ours ends the process.
    """
    import atexit
    import gc

    status = [70]  # a fault of kvtier, until it says otherwise

    def leave() -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            pass
        os._exit(status[0])

    atexit.register(leave)
    gc.set_threshold(20_000)
    status[0] = main()
    return status[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (`argv` without the program's name) and returns its exit status; never raises."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        _harden_streams()
        status = _run(args)
        sys.stdout.flush()
    except BaseException as error:  # this is the one place
        status = _report(error, args)
    _flush_quietly()
    return status


def _run(args: list[str]) -> int:
    if args[:1] in (["--version"], ["-V"]):
        from kvtier_cli import __version__

        print(f"kvtier {__version__}")
        return 0
    from kvtier_cli.commands.lazy import root

    group = root(COMMANDS, help=HELP, epilog=EPILOG)
    if _COMPLETE in os.environ:
        group.main(args=args, prog_name="kvtier", complete_var=_COMPLETE)
    with group.make_context("kvtier", args) as ctx:
        result = group.invoke(ctx)
    return int(result) if isinstance(result, int) else 0


def _harden_streams() -> None:
    """Makes both streams take any text: a closed one swallows it, others escape what they cannot encode."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _report(error: BaseException, args: Sequence[str]) -> int:
    """Writes `error` to stderr in one or two lines and returns the exit status it stands for."""
    from kvtier_cli.errors import ExitStatus

    if isinstance(error, BrokenPipeError):
        return ExitStatus.DONE  # who reads has seen enough
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        _to_stderr(["interrupted"])
        return ExitStatus.INTERRUPTED
    if isinstance(error, SystemExit) or type(error).__name__ == "Exit":
        code = getattr(error, "exit_code", getattr(error, "code", None))
        return code if isinstance(code, int) else ExitStatus.DONE
    failure = _as_failure(error)
    own_flags = args[: args.index("--")] if "--" in args else args
    lines = []
    from kvtier_cli.render.console import is_set, output_for, plain

    if "--debug" in own_flags or is_set("KVTIER_DEBUG"):
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
    out = output_for(sys.stderr, no_color="--no-color" in own_flags)
    lines = [plain(line) for line in lines]
    lines.append(f"{out.style('error:', 'error')} {plain(str(failure))}")
    if failure.hint:
        lines.append(f"       {plain(failure.hint)}")
    _to_stderr(lines)
    return failure.exit_status


def _as_failure(error: BaseException) -> KvtierError:
    """Any exception as one of ours, with its exit status."""
    import errno

    from kvtier_cli.errors import EnvironmentFault, InputError, KvtierError

    if isinstance(error, KvtierError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        named = isinstance(error.filename, str | bytes)
        place = os.fsdecode(error.filename) if named else "reading or writing failed"  # writes do not name their file
        message = f"{place}: {(error.strerror or 'for no known reason').lower()}"
        return InputError(message) if errno.errorcode.get(error.errno) in _INPUT_ERRNOS else EnvironmentFault(message)
    if isinstance(error, MemoryError):
        return EnvironmentFault("out of memory")
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("kvtier_cli"):
        return EnvironmentFault(f'the Python package "{error.name}" is not installed', hint="Install kvtier again.")
    if hasattr(error, "format_message"):  # typer's usage errors; typer itself may not be loaded yet
        return _usage_failure(error)
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return KvtierError(f"a fault of kvtier: {text} (--debug shows the traceback)")


def _usage_failure(error: BaseException) -> KvtierError:
    """A usage error of typer's in our words, with the way to the help."""
    from kvtier_cli.errors import InputError

    path = getattr(getattr(error, "ctx", None), "command_path", "kvtier")
    hint = f"{path} --help shows how it is used."
    option = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption":
        nearest = list(getattr(error, "possibilities", None) or [])[:1]
        suggestion = f' Did you mean "{nearest[0]}"?' if nearest else ""
        return InputError(f'{path} has no option "{option}".{suggestion}', hint=hint)
    message = str(getattr(error, "format_message")())  # noqa: B009 - typed as BaseException here
    return InputError(message[:1].lower() + message[1:].rstrip("."), hint=hint)


def _to_stderr(lines: Sequence[str]) -> None:
    """Writes whole lines; what was printed to stdout comes first. A stream that is gone changes nothing."""
    _flush_quietly()
    try:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _flush_quietly() -> None:
    """Empties stdout; where that fails (pipe closed, disk full) the rest is dropped, or Python complains at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        import contextlib

        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(program())
