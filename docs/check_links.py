"""Check that every link within the built documentation and the texts of the repository leads somewhere.

    python docs/check_links.py docs/_build

Pages are read as browsers do: a link to a page that is not there, or to a place that the page does
not have, is printed. Links to other sites are not followed.
"""

import functools
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

ROOT = Path(__file__).parents[1]
TEXTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


class Page(HTMLParser):
    """The links of a page and the places in it that can be linked to."""

    def __init__(self, html):
        super().__init__()
        self.links, self.places = set(), {"", "top"}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        del tag
        known = dict(attrs)
        self.places |= {known[name] for name in ("id", "name") if known.get(name)}
        self.links |= {known[name] for name in ("href", "src") if known.get(name)}
        self.links |= {part.split()[0] for part in (known.get("srcset") or "").split(",") if part}


def read(path):
    """Return a page of HTML or of Markdown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = (
            MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=6).render(text)
        )
    return Page(text)


def broken(path, pages):
    """Yield the links of a page that lead nowhere."""
    for link in sorted(pages(path).links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        readable = target.suffix in {".html", ".md"}
        if not target.exists() or (
            parts.fragment and readable and unquote(parts.fragment) not in pages(target).places
        ):
            yield link


def main(folder):
    folder = Path(folder).resolve()
    built = sorted(set(folder.rglob("*.html")) - set(folder.glob("_static/**/*.html")))
    if not built:
        print(f"There are no pages in {folder}: build them first.")
        return True
    pages = functools.cache(read)
    sources = [*(ROOT / name for name in TEXTS), *built]
    failures = [f"{path}: {link}" for path in sources for link in broken(path, pages)]
    print(*failures, sep="\n", end="\n" if failures else "")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
