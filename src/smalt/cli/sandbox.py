"""`smalt sandbox`: what keeps untrusted programs in on this machine."""

from __future__ import annotations

import sys

import click

from smalt.cli.errors import readable_errors
from smalt.sandbox.isolation import LOSSES, MEANINGS, REMEDIES, Isolation, Layer, Level


@click.group("sandbox")
def sandbox() -> None:
    """Look at the sandbox that runs untrusted programs."""


@sandbox.command("doctor")
@click.option(
    "--require",
    type=click.Choice([level.value for level in Level]),
    help="End with status 1 when this machine reaches less.",
)
@readable_errors
def doctor(require: str | None) -> None:
    """Start the sandbox as a run would, and show each layer, present or missing, and the level reached.

    Levels: minimum (no new processes, no network, no host files), strong (also own processes, network, user
    and root folder), full (also Landlock). `--require minimum` is what every command of smalt wants.
    """
    from smalt.sandbox.forkserver import ForkServerSandbox

    with ForkServerSandbox(workers=1, require=Level.NONE) as opened:
        isolation = opened.isolation
    for layer in Layer:
        _show(layer, isolation)
    click.echo(f"level: {isolation.level}")
    if require is not None and isolation.lacking(Level(require)):
        click.echo(f"required: {require}; missing: {', '.join(isolation.lacking(Level(require)))}", err=True)
        sys.exit(1)


def _show(layer: Layer, isolation: Isolation) -> None:
    if layer in isolation.present:
        detail = isolation.present[layer]
        click.secho(f"present  {layer}" + (f" ({detail})" if detail else ""), bold=True)
        click.echo(f"         {MEANINGS[layer]}")
        return
    click.secho(f"missing  {layer}: {isolation.missing.get(layer, 'not available')}", bold=True)
    click.echo(f"         without it: {LOSSES[layer]}")
    if layer in REMEDIES:
        click.echo(f"         to get it: {REMEDIES[layer]}")
