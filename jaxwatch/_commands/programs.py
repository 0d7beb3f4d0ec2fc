"""What ``run`` and ``advise`` share: a program and its arguments."""

import os

import click

REST = {"ignore_unknown_options": True, "allow_interspersed_args": False}  # what follows the program is its own


def checked(_context: click.Context, _parameter: click.Parameter, program: str) -> str:
    """Return the program; a mistyped option before it would be taken for it.

    Raises:
        click.NoSuchOption: It begins with a dash, and is no file.
    """
    if program.startswith("-") and not os.path.exists(program):
        raise click.NoSuchOption(program)
    return program
