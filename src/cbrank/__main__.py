"""The command ``cbrank``, and ``python -m cbrank``: a process of its own."""

from cbrank.cli import main
from cbrank.optional import do_without


def run() -> None:
    """Run a command; to learn and to score takes no scikit-learn, whose import takes long."""
    do_without("sklearn")
    main(prog_name="cbrank")


if __name__ == "__main__":
    run()
