"""How many commands and options there are, and what all commands have in common."""

from collections.abc import Iterator
from typing import Any

import pytest
from processes.command_line import in_process

from facepairs.cli.app import COMMANDS, build_command, global_options

MOST_COMMANDS, MOST_OPTIONS = 28, 119
UNCOUNTED = {"--help", "--json", "--quiet", "--verbose"}
LONGEST_HELP = 60  # characters of the line in the list of commands


def leaves(command: Any) -> Iterator[Any]:
    """Yield the commands below a group."""
    for name in command.list_commands(None):
        child = command.get_command(None, name)
        yield from leaves(child) if hasattr(child, "list_commands") else [child]


EVERYWHERE = {name for option in global_options() for name in option.opts}


def options_of(command: Any) -> set[str]:
    """Return the long names of the options that only this command has."""
    names = {name for option in command.params for name in option.opts if name.startswith("--")}
    return names - UNCOUNTED - EVERYWHERE


def test_there_are_few_commands_and_options():
    commands = list(leaves(build_command()))
    assert len(commands) <= MOST_COMMANDS
    everywhere = len(EVERYWHERE - UNCOUNTED)
    assert sum(len(options_of(command)) for command in commands) + everywhere <= MOST_OPTIONS


def test_an_option_s_value_may_be_called_like_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    in_process("--photo-cache", "cache", "info", "default", check=0)


def test_a_mistake_is_told_with_the_help_that_explains():
    mistyped = in_process("verfy", "a.jpg", "b.jpg", check=2).stderr
    assert "'verify'" in mistyped
    assert mistyped.endswith("? See facepairs --help\n")
    missing = in_process("verify", "a.jpg", check=2).stderr
    assert missing.endswith("; see facepairs verify --help\n")


@pytest.mark.parametrize("group", ["cache", "data", "gallery"])
def test_a_group_alone_shows_its_help(group):
    assert in_process(group, check=2).stdout.startswith(f"Usage: facepairs {group} ")


def test_an_option_has_one_name():
    for command in leaves(build_command()):
        for option in command.params:
            assert len(option.opts) == 1, (command.name, option.opts)


def test_a_flag_that_has_no_opposite_is_off_unless_it_is_given():
    for command in leaves(build_command()):
        for option in command.params:
            if getattr(option, "is_flag", False) and not option.secondary_opts:
                assert not option.default, (command.name, option.opts)


def test_every_command_has_one_uncut_line_in_the_order_of_use():
    lines = in_process("--help", check=0).stdout.partition("Commands:\n")[2].splitlines()
    listed = [line.split(maxsplit=1) for line in lines[: len(COMMANDS)]]
    assert tuple(name for name, _ in listed) == COMMANDS
    for _, text in listed:
        assert len(text) <= LONGEST_HELP
        assert "..." not in text


def test_every_command_has_an_example():
    for command in leaves(build_command()):
        assert "facepairs " in command.epilog, command.name
