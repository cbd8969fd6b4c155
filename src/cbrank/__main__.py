"""``python -m cbrank`` is the command ``cbrank``."""

from cbrank.cli import main

main(prog_name="cbrank")
