"""Print the table of metrics for the page "Serving".

python docs/make_metrics_table.py > docs/_metrics_table.md
"""

from cbrank.serving.metrics import NUMBERS


def table():
    """Return the table."""
    lines = ["| name | kind | what it says |", "|---|---|---|"]
    for number in NUMBERS:
        label = f"{{{number.label}}}" if number.label else ""
        lines.append(f"| `{number.name}{label}` | {number.kind} | {number.text} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
