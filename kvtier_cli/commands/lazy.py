"""The command group that imports a command's module only when that command runs. Knows no command by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kvtier_cli import __version__
from kvtier_cli.commands.options import Shared, declare, merge
from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter, Parameter
    from typer._click.shell_completion import CompletionItem

SETTINGS = {"help_option_names": ["-h", "--help"]}
_SHARED = tuple(field.name for field in fields(Shared))


@cache
def _shared_parameters() -> tuple[Parameter, ...]:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(declare)
    return tuple(get_command(app).params)


def _with_shared(own: Sequence[Parameter]) -> list[Parameter]:
    names = {parameter.name for parameter in own}
    return [*own, *(parameter for parameter in _shared_parameters() if parameter.name not in names)]


def _take_shared(ctx: Context) -> None:
    """Moves the shared options from the command's arguments to `ctx.obj`."""
    injected = set(_shared_parameters()).intersection(ctx.command.params)
    given = {name: ctx.params[name] for name in _SHARED if name in ctx.params}
    for parameter in injected:
        ctx.params.pop(parameter.name or "", None)
    outer = ctx.obj if isinstance(ctx.obj, Shared) else Shared()
    ctx.obj = merge(outer, Shared(**given))


@contextmanager
def _errors_of(ctx: Context) -> Iterator[None]:
    """Usage errors that do not say which command they are about are about this one."""
    try:
        yield
    except Exception as error:
        if getattr(error, "ctx", ctx) is None:
            error.ctx = ctx  # type: ignore[attr-defined]
        raise


class LeafCommand(TyperCommand):
    """A command with the shared options."""

    def __init__(self, *args: Any, params: list[Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, params=_with_shared(params or []), **kwargs)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        with _errors_of(ctx):
            return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """A required argument as its bare name: typer puts braces around it, which mean a choice elsewhere."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Context) -> Any:
        _take_shared(ctx)
        return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """Commands under one name. Without any it prints its help; an unknown one is told the nearest known name."""

    def __init__(self, *args: Any, params: list[Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, params=_with_shared(params or []), **kwargs)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit
        with _errors_of(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Context) -> Any:
        _take_shared(ctx)
        return super().invoke(ctx)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            raise _unknown(ctx.command_path, name, self.list_commands(ctx))
        return (name if command else None), command, args[1:]


def _unknown(path: str, name: str, known: Sequence[str]) -> InputError:
    from kvtier_cli.wording import nearest

    near = nearest(name, known)
    suggestion = f' Did you mean "{near}"?' if near else ""
    return InputError(f'{path} has no command "{name}".{suggestion}', hint=f"{path} --help lists the commands.")


class LazyGroup(CommandGroup):
    """The top-level group. `table`: command → (its module, one line of help), in the order of the help."""

    table: Mapping[str, tuple[str, str]] = {}

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name in self.table and cmd_name not in self.commands:
            self.commands[cmd_name] = load(cmd_name, self.table[cmd_name][0])
        return self.commands.get(cmd_name)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        if self.table:
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Nothing: the table was shown above the options, without importing a command."""

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        from typer._click.shell_completion import CompletionItem

        matching = [(name, text) for name, (_, text) in self.table.items() if name.startswith(incomplete)]
        names = [CompletionItem(name, help=text) for name, text in matching]
        return names + super(TyperGroup, self).shell_complete(ctx, incomplete)


def load(name: str, module_name: str) -> Command:
    """The command of a module: its `command`, a function or a `typer.Typer` with subcommands.

    A module may also have `EXAMPLES`, command lines shown at the end of its help, and `WITHOUT`, the names of shared
    options that make no sense for it.
    """
    module = import_module(module_name)
    entry = module.command
    epilog = examples_text(getattr(module, "EXAMPLES", ()))
    if isinstance(entry, typer.Typer):
        app = entry
        _adopt(app)
        app.info.epilog = epilog
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, cls=LeafCommand, epilog=epilog, context_settings=SETTINGS)(entry)
    app._add_completion = False
    command = get_command(app)
    command.name = name
    without = getattr(module, "WITHOUT", ())
    command.params = [parameter for parameter in command.params if parameter.name not in without]
    return command


def _adopt(app: typer.Typer) -> None:
    """Gives subcommands, at any depth, the shared options and the manners of `CommandGroup`."""
    app.info.cls = CommandGroup
    app.rich_markup_mode = None
    for command in app.registered_commands:
        command.cls = LeafCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _adopt(group.typer_instance)


def examples_text(examples: Sequence[str]) -> str | None:
    """The end of a help text; the mark \\b keeps its lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples) if examples else None


def root(table: Mapping[str, tuple[str, str]], *, help: str, epilog: str) -> LazyGroup:
    """The `kvtier` command itself, over the commands of `table`."""
    app = typer.Typer(
        cls=LazyGroup,
        help=help,
        epilog=epilog,
        callback=_root_options,
        context_settings=SETTINGS,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
    )
    group = get_command(app)
    assert isinstance(group, LazyGroup)  # noqa: S101 - typer makes what `cls` says
    group.table = table
    return group


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvtier {__version__}")
        raise typer.Exit


def _root_options(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """What `kvtier` takes besides the shared options; `main.py` answers `--version` faster when it comes first."""
