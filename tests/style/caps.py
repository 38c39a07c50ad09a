"""Lines of each top folder against its cap. Counted: C++, Cap'n Proto, Python and shell, comments included."""

COUNTED = (".h", ".cpp", ".cu", ".cuh", ".inc", ".capnp", ".py", ".sh")


def counts(tree, name):
    if name.endswith(COUNTED):
        return True
    with open(tree.root / name, "rb") as file:  # a script's name has no ending
        return "." not in name.rpartition("/")[2] and file.read(2) == b"#!"


def check_caps(tree):
    table = tree.root / "tests" / "style" / "caps"
    if not table.exists():
        return True
    caps = dict(line.split() for line in table.read_text().splitlines() if line and not line.startswith("#"))
    lines = dict.fromkeys(caps, 0)
    for name in tree.every_file():
        folder = name.partition("/")[0]
        if folder in lines and counts(tree, name):
            lines[folder] += (tree.root / name).read_bytes().count(b"\n")
    good = True
    for folder, cap in caps.items():
        over = lines[folder] - int(cap)
        if over > 0:
            good = False
            print(f"tests/style/caps: {folder} has {lines[folder]} lines, {over} more than its cap: shorten or delete something there; a cap rises only by what an issue names")
        elif over < 0:
            print(f"tests/style/caps: {folder} has {lines[folder]} lines: its cap can fall by {-over}")
    print(f"== lines: {sum(lines.values())} of {sum(map(int, caps.values()))}", flush=True)
    return good
