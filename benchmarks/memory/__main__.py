"""The command `python -m benchmarks.memory`."""

from __future__ import annotations

import json
import subprocess
import sys

import click

_GB = 1e9


@click.command()
@click.option("--batches", default="1,2,4,8,16,32", show_default=True, help="Rows.")
@click.option("--length", default=1024, show_default=True, help="Tokens of a row.")
@click.option("--vocabulary", default=151_936, show_default=True, help="Qwen's.")
@click.option("--hidden", default=64, show_default=True, help="Width; small, so that logits are what shows.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--limit", default=8.0, show_default=True, help="GB; the plain way is not run beyond it.")
def main(batches: str, length: int, vocabulary: int, hidden: int, device: str, limit: float) -> None:
    """Peak memory of one step, ours and all logits at once, each in a process of its own."""
    click.echo("| rows | all logits, one tensor, GB | plain peak GB | ours peak GB | of it before the step |")
    click.echo("|---|---|---|---|---|")
    for batch in map(int, batches.split(",")):
        logits = 4 * batch * length * vocabulary / _GB
        sizes = tuple(map(str, (batch, length, vocabulary, hidden)))
        # Logits, their logarithm and its gradient exist together.
        plain = f"{_child('plain', *sizes, device)['peak'] / _GB:.2f}" if 3 * logits < limit else "not run"
        ours = _child("ours", *sizes, device)
        before, peak = ours["before"] / _GB, ours["peak"] / _GB
        click.echo(f"| {batch} | {logits:.2f} | {plain} | {peak:.2f} | {before:.2f} |")


def _child(*arguments: str) -> dict[str, int]:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory.child", *arguments], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise click.ClickException(f"{' '.join(arguments)}: exit code {ran.returncode}\n{ran.stderr[-2000:]}")
    found: dict[str, int] = json.loads(ran.stdout)
    return found


if __name__ == "__main__":
    main()
