"""`smalt eval`: Pass@1 by turn of a model on a problem file."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("eval")
@click.option("--model", required=True, help="Model folder, hub name, or 'lab'.")
@click.option("--problems", "file", required=True, help="Problem file (docs/formats.md), or 'lab'.")
@click.option("--turns", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Dialogues a problem.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.6, show_default=True)
@click.option("--top-p", type=click.FloatRange(min=0, min_open=True, max=1), default=0.95, show_default=True)
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=1024, show_default=True)
@click.option(
    "--best-of",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Draw so many programs a turn and go on with the best by public tests, then by the verifier.",
)
@click.option("--verifier", help="Folder of a verifier (verifier/ of a muCode run), for --best-of.")
@click.option("--stop-at-public-pass", is_flag=True, help="End a dialogue when its public tests pass.")
@click.option("--format", "format_name", default="auto", show_default=True, help="Format of the problem file.")
@click.option("--split", help="Split of the problem set.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many problems.")
@click.option("--recipe", type=click.Path(path_type=Path), help="Take dialogue and grader settings from here.")
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Set a field, e.g. model.dtype=bfloat16.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for summary and dialogues.")
@readable_errors
def eval_command(
    model: str,
    file: str,
    turns: int,
    samples: int,
    temperature: float,
    top_p: float,
    max_new_tokens: int,
    best_of: int,
    verifier: str | None,
    stop_at_public_pass: bool,
    format_name: str,
    split: str | None,
    limit: int | None,
    recipe: Path | None,
    overrides: tuple[str, ...],
    seed: int,
    out: Path,
) -> None:
    """Evaluate a model over several turns of feedback from the public tests, scored on the hidden ones."""
    from rich.console import Console

    from smalt.pipeline import evaluate_model
    from smalt.reports.run_folder import EvaluationSummary
    from smalt.reports.table import evaluation_table
    from smalt.settings import load_evaluation

    settings = load_evaluation(
        {
            "seed": seed,
            "model": {"path": model},
            "verifier": verifier,
            "problems": {"path": file, "format": format_name, "split": split, "limit": limit},
            "evaluation": {
                "turns": turns,
                "samples": samples,
                "best_of": best_of,
                "stops_at_public_pass": stop_at_public_pass,
                "sampling": {"temperature": temperature, "top_p": top_p, "max_new_tokens": max_new_tokens},
            },
        },
        recipe,
        overrides,
    )
    console = Console()
    summary = EvaluationSummary.model_validate(evaluate_model(settings, out, console))
    console.print(evaluation_table(summary.by_turn()))
    console.print(f"Summary: {out / 'summary.json'}", highlight=False)
