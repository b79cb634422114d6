"""Errors a user can mend end the command with a sentence, not a traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def readable_errors(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Show the message of a ValueError (bad input) or OSError (files, disk) and exit with status 2."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except (ValueError, OSError) as error:
            raise _BadInput(str(error)) from error
        except KeyboardInterrupt as error:
            raise click.ClickException("stopped; the same command goes on where it was") from error

    return run


class _BadInput(click.ClickException):
    exit_code = 2
