#!/usr/bin/env python3
"""The pages (*.md): every relative link leads to a file that is there, and to a heading that is there; every path of the
project that a page names as code exists; the README and the users' pages stay short."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_LINES = 150
USERS_PAGE_WORDS = 2500

FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#+ +(.+)$", re.M)
OF_PROJECT = re.compile(r"(?<![\w./-])(?:\.ci|cmake|ctl|daemon|deploy|engine|kernels|schema|tests)/[\w./-]*\w")


def pages():
    for path in sorted(ROOT.rglob("*.md")):
        top = path.relative_to(ROOT).parts[0]
        if not top.startswith((".", "build")) and top != "out":
            yield path


def anchors(text):
    """What GitHub makes of the headings."""
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in HEADING.findall(FENCE.sub("", text))}


def dead_links(path, text):
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.resolve().is_relative_to(ROOT) or not target.exists():
            yield f"{path}: {link}: no such file in the repository"
        elif anchor and target.suffix == ".md" and anchor not in anchors(text if target == path else target.read_text()):
            yield f"{path}: {link}: no such heading"


def dead_paths(path, text):
    for code in FENCE.findall(text) + CODE.findall(FENCE.sub("", text)):
        for name in OF_PROJECT.findall(code):
            if not (ROOT / name).exists():
                yield f"{path}: {name} does not exist"


class Pages(unittest.TestCase):
    def test_links_and_paths_lead_somewhere(self):
        self.assertIn(ROOT / "README.md", list(pages()), "is this the repository?")
        wrong = [dead for path in pages() for find in (dead_links, dead_paths) for dead in find(path, path.read_text())]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_dead_ones_would_be_seen(self):
        page, text = ROOT / "README.md", "# tgd\n## Three machines in five commands\n"
        for link in ("nowhere.md", "tests/nowhere", "../outside.md", "#no-such-heading", "deploy/README.md#no-such-heading"):
            self.assertTrue(list(dead_links(page, text + f"[a]({link})")), link)
        for link in ("deploy/demo", "https://arxiv.org/abs/1705.07878", "#three-machines-in-five-commands", "tests/lab"):
            self.assertFalse(list(dead_links(page, text + f"[a]({link})")), link)
        for code in ("`deploy/nothing`", "```\ntests/nothing --help\n```", "1. a\n   ```\n   tests/nothing\n   ```"):
            self.assertTrue(list(dead_paths(page, code)), code)
        self.assertFalse(list(dead_paths(page, "`deploy/demo` `build/release/daemon/tgd` `10.0.0.1/daemon/no`")))

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), README_LINES)

    def test_the_users_pages_are_short(self):
        for path in (ROOT / "deploy").glob("*.md"):
            self.assertLessEqual(len(path.read_text().split()), USERS_PAGE_WORDS, f"{path}: give a topic a page of its own")


if __name__ == "__main__":
    sys.exit(unittest.main())
