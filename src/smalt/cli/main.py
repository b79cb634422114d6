"""The `smalt` command. Each subcommand is a file of this folder and imports what it needs when it runs."""

from __future__ import annotations

import click

from smalt import __version__
from smalt.cli.compare import compare
from smalt.cli.demo import demo
from smalt.cli.eval import eval_command
from smalt.cli.grade import grade
from smalt.cli.lab import lab
from smalt.cli.models import models
from smalt.cli.problems import problems
from smalt.cli.report import report
from smalt.cli.sandbox import sandbox
from smalt.cli.sft import sft
from smalt.cli.train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="smalt")
def main() -> None:
    """Post-train code models with reinforcement learning over several turns of execution feedback.

    Start with `smalt demo`: the whole of Cobalt on a laptop, in minutes.
    """


for command in (demo, train, eval_command, compare, grade, sft, problems, models, lab, report, sandbox):
    main.add_command(command)
