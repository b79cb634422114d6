"""`python -m smalt`."""

from smalt.cli.main import main

main(prog_name="smalt")
