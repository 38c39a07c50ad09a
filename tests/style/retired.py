"""Words and forms that were retired, so that none comes back: tests/style/retired says which, and what to say instead."""

import bisect
import re

FOLDERS = ("kernels/", "schema/", "engine/", "daemon/", "ctl/", "deploy/", "tests/")
KINDS = ("comments", "names", "all")
# (comment, or string): a comment is kept by "comments", what is neither by "names"
CPP = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
PYTHON = re.compile(r'(?P<comment>#[^\n]*|""".*?""")|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CAPNP = re.compile(r'(?P<comment>#[^\n]*)|"(?:\\.|[^"\\\n])*"')


def language(name, text):
    if name.endswith((".h", ".cpp", ".cu", ".cuh", ".inc")):
        return CPP
    if name.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        return PYTHON
    return CAPNP if name.endswith(".capnp") else None


def lines_of(text, kind, grammar):
    """The file's lines as far as they are of that kind, without what stands before them: [(number, text)]."""
    if kind == "all" or grammar is None:
        return list(enumerate(text.split("\n"), 1)) if kind == "all" else []
    if kind == "names":
        bare = grammar.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
        return list(enumerate(bare.split("\n"), 1))
    found = []
    for comment in grammar.finditer(text):
        if comment["comment"]:
            first = text.count("\n", 0, comment.start()) + 1
            found += [(first + i, line.strip()) for i, line in enumerate(comment[0].split("\n"))]
    return found


def read_rules(table):
    """[(expression, instead, kind, paths)]"""
    rules = []
    for number, line in enumerate(table.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            expression, instead, kind, *paths = line.split("\t")
            if kind not in KINDS:
                raise SystemExit(f"tests/style/retired:{number}: {kind} is none of {', '.join(KINDS)}")
            rules.append((re.compile(expression, re.M), instead, kind, tuple(paths[0].split()) if paths else ()))
    return rules


def meant(name, paths):
    """Paths begin with what they are for; with ! before, what they are not for."""
    without = tuple(path[1:] for path in paths if path.startswith("!"))
    only = tuple(path for path in paths if not path.startswith("!"))
    return not (without and name.startswith(without)) and (not only or name.startswith(only))


def check_retired(tree):
    table = tree.root / "tests" / "style" / "retired"
    if not table.exists():
        return True
    rules, good, looked_at = read_rules(table), True, 0
    for name in tree.every_file():
        if not name.startswith(FOLDERS) and name != "README.md" or name.startswith("tests/style/"):
            continue
        try:
            text = (tree.root / name).read_text()
        except UnicodeDecodeError:
            continue
        grammar = language(name, text)
        if grammar is None and not name.endswith(".md"):
            continue
        looked_at += 1
        for kind in KINDS:
            lines = lines_of(text, kind, grammar)
            joined, starts = "\n".join(line for _, line in lines), [0]
            for _, line in lines:
                starts.append(starts[-1] + len(line) + 1)
            for expression, instead, of, paths in rules:
                if of != kind or not meant(name, paths):
                    continue
                for found in expression.finditer(joined):
                    number, line = lines[bisect.bisect_right(starts, found.start()) - 1]
                    print(f"{name}:{number}: retired: {line.strip()[:100]}\n    say: {instead}")
                    good = False
    print(f"== retired words: {len(rules)}, in {looked_at} files", flush=True)
    return good
