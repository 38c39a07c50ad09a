#!/usr/bin/env python3
"""What evaluation makes of pictures is, byte for byte, what Pillow makes of them by engine/recipe.h: the artefact's promise.
pillow.py PROGRAM, which is tgd_evaluated; status 77 where there is no Pillow."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    from PIL import Image, features
except ImportError:  # Debian's is for Debian's own Python
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("no Pillow here: apt-get install python3-pil")
    sys.exit(77)

SIZE, RESIZE = 224, 256
PICTURES = [("large.jpg", 2100, 2500), ("wide.jpg", 1000, 750), ("vga.jpg", 640, 480), ("grey.jpg", 333, 500), ("near.jpg", 256, 300),
            ("small.png", 90, 70), ("cmyk.jpg", 500, 500)]  # fmt: skip


def picture(width, height, draw):
    coarse = Image.frombytes("RGB", (width // 8 + 1, height // 8 + 1), draw.randbytes((width // 8 + 1) * (height // 8 + 1) * 3))
    return coarse.resize((width, height), Image.BICUBIC)


def write(folder, draw):
    for part in ("train", "test"):
        os.makedirs(folder / part / "all")
        for name, width, height in PICTURES:
            made = picture(width, height, draw)
            made = made.convert("L") if name.startswith("grey") else made.convert("CMYK") if name.startswith("cmyk") else made
            made.save(folder / part / "all" / name)


def evaluated(path):
    made = Image.open(path)
    if path.suffix == ".jpg":
        made.draft("RGB" if made.mode == "RGB" else None, (RESIZE, RESIZE))
    made = made.convert("RGB")
    width, height = made.size
    if min(width, height) != RESIZE:
        size = (RESIZE, RESIZE * height // width) if width <= height else (RESIZE * width // height, RESIZE)
        made = made.resize(size, Image.BILINEAR)
    left, top = (made.width - SIZE) // 2, (made.height - SIZE) // 2
    return made.crop((left, top, left + SIZE, top + SIZE)).tobytes()


def main(program):
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        write(folder, random.Random(1))
        subprocess.run([program, folder, str(SIZE), folder / "out"], check=True)
        ours = (folder / "out").read_bytes()
        paths = sorted((folder / "test" / "all").iterdir())
        length = SIZE * SIZE * 3
        assert len(ours) == len(paths) * length, len(ours)
        # A decoder of another make may round its cosines another way, and then a resize its pixels.
        same = features.check_feature("libjpeg_turbo")
        for i, path in enumerate(paths):
            worst = max(abs(a - b) for a, b in zip(ours[i * length : (i + 1) * length], evaluated(path)))
            print(f"{path.name}: differs by {worst} at most")
            assert worst <= (0 if same else 4), path.name


main(sys.argv[1])
