#!/usr/bin/env python3
"""What evaluation sees of a test set is, float for float, what predict.py makes of it with Pillow and numpy, and it finds
the same samples and labels in the same folders; what it cannot read it says in a line. The artefact's promise, without its
network.
pillow.py PROGRAM, which is tgd_evaluated; status 77 where there is no Pillow or numpy."""

import argparse
import contextlib
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image, features
except ImportError:  # Debian's are for Debian's own Python
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("no Pillow or numpy here: apt-get install python3-pil python3-numpy")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "ctl" / "fetch"))
import predict  # noqa: E402

PICTURES = [("large.jpg", 2100, 2500), ("wide.jpg", 1000, 750), ("vga.jpg", 640, 480), ("grey.jpg", 333, 500), ("near.jpg", 256, 300),
            ("small.png", 90, 70), ("cmyk.jpg", 500, 500)]  # fmt: skip
ODD = ["jpeg_444", "jpeg_baseline", "jpeg_cmyk", "jpeg_grey", "jpeg_progressive", "png_bits", "png_grey", "png_grey_alpha",
       "png_palette", "png_palette_transparent", "png_rgb", "png_rgba"]  # fmt: skip
# A decoder of another make may round its cosines another way, and then a resize its pixels.
BYTES = 0 if features.check_feature("libjpeg_turbo") else 4


def drawn(width, height, draw):
    coarse = Image.frombytes("RGB", (width // 8 + 1, height // 8 + 1), draw.randbytes((width // 8 + 1) * (height // 8 + 1) * 3))
    return coarse.resize((width, height), Image.BICUBIC)


def write_large(folder, draw):
    for part in ("train", "test"):
        os.makedirs(folder / part / "all")
        for name, width, height in PICTURES:
            made = drawn(width, height, draw)
            made = made.convert("L") if name.startswith("grey") else made.convert("CMYK") if name.startswith("cmyk") else made
            made.save(folder / part / "all" / name)
        Image.fromarray(np.frombuffer(draw.randbytes(2 * 40 * 50), np.uint16).reshape(40, 50)).save(folder / part / "all" / "deep.png")


def write_odd(folder):
    """Every kind of JPEG and PNG that the fuzzed readers know, in classes whose share is held back."""
    for copy in range(4):
        for number, name in enumerate(ODD):
            place = folder / "train" / ("even" if number % 2 == 0 else "odd") / str(copy)
            os.makedirs(place, exist_ok=True)
            shutil.copy(ROOT / "tests/fuzz/corpus/pictures" / name, place / (name + (".JPG" if name[0] == "j" else ".png")))


def write_lists(folder, draw):
    """The three forms of a line, and classes that are numbers."""
    for place, lines in (("words", "all/%d.png\tcat or dog"), ("folders", "bird/%d.png"), ("numbers", "all/%d.png 10")):
        for part in ("train", "test"):
            other = "all/9.png\tbird" if place != "numbers" else "all/9.png 9"
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / f"{part}.txt").write_text("\n".join([*(lines % i for i in (3, 1, 2)), "", other]) + "\n")
        for i in (1, 2, 3, 9):
            for name in ("all", "bird"):
                (folder / place / name).mkdir(exist_ok=True)
                drawn(12, 12, draw).save(folder / place / name / f"{i}.png")
    odd = folder / "odd"  # bytes that are no UTF-8, ends of lines that are none, digits that are no numbers here
    names = [b"all/caf\xe9.png", "all/a\x0cb\x85c\u2028d.png".encode(), b"all/carriage\rreturn.png"]
    lines = [*(name + b"\tcat" for name in names), b"all/crlf.png 7\r", "cat/five.png \u0665".encode()]
    (odd / "cat").mkdir(parents=True)
    (odd / "train.txt").write_bytes(b"\n".join(lines))
    (odd / "test.txt").write_bytes(b"\n".join(reversed(lines)))
    (odd / "all").mkdir()
    for name in (*names, b"all/crlf.png", lines[-1]):
        drawn(12, 12, draw).save(odd / os.fsdecode(name), format="PNG")


def write_arrays(folder, draw):
    os.makedirs(folder / "bytes")
    os.makedirs(folder / "floats")
    bytes_of = lambda *shape: np.frombuffer(draw.randbytes(int(np.prod(shape))), np.uint8).reshape(shape)  # noqa: E731
    for part, count in (("train", 30), ("test", 12)):
        np.save(folder / "bytes" / f"x_{part}.npy", bytes_of(count, 20, 24, 3))
        np.save(folder / "bytes" / f"y_{part}.npy", np.arange(count) % 5)
    np.save(folder / "floats" / "x_train.npy", bytes_of(40, 17).astype(np.float64) / 7 - 11)
    np.save(folder / "floats" / "y_train.npy", np.arange(40, dtype=np.int32) % 3)
    for part, count in (("train", 8), ("t10k", 6)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + draw.randbytes(count * 784))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count)))
    write_mnist(folder / "mnist", draw, 0)
    os.makedirs(folder / "cifar-10-batches-bin")
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(b"".join(bytes([i]) + draw.randbytes(3072) for i in range(10)))


def write_mnist(folder, draw, first):
    """MNIST's files of different sizes, under every spelling of their names."""
    os.makedirs(folder, exist_ok=True)
    for i, spelling in enumerate(("-idx%d-ubyte", ".idx%d-ubyte", "-idx%d-ubyte.gz", ".idx%d-ubyte.gz")[first:]):
        packed = gzip.compress if spelling.endswith("gz") else bytes
        for part in ("train", "t10k"):
            count = 7 + first + i
            images = struct.pack(">4I", 0x803, count, 28, 28) + draw.randbytes(count * 784)
            (folder / (f"{part}-images" + spelling % 3)).write_bytes(packed(images))
            (folder / (f"{part}-labels" + spelling % 1)).write_bytes(packed(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count))))


def write_names(folder, draw):
    """Arrays under all names that tgd knows: after each the ones that it prefers."""
    os.makedirs(folder)
    samples = ["test-features", "test-images", "test_images", "test-X", "X-test", "test_X", "X_test", "test-x", "x-test", "test_x", "x_test"]
    labels = ["test-labels", "test_labels", "test-Y", "Y-test", "test_Y", "Y_test", "test-y", "y-test", "test_y", "y_test"]
    np.save(folder / "x_train.npy", np.frombuffer(draw.randbytes(30), np.uint8).reshape(10, 3))
    np.save(folder / "y_train.npy", np.arange(10) % 3)
    for i in range(len(samples)):
        np.save(folder / f"{samples[i]}.npy", np.frombuffer(draw.randbytes(12), np.uint8).reshape(4, 3))
        np.save(folder / f"{labels[min(i, len(labels) - 1)]}.npy", (np.arange(4) + i) % 3)
        yield


def compare(program, out, kind, folder, bytes_apart=0, **keys):
    words = [f"{key.replace('_', '-')}={value}" for key, value in keys.items()]
    subprocess.run([program, kind, folder, out, *words], check=True)
    model = json.loads(pathlib.Path(f"{out}.json").read_text())
    values = np.fromfile(out, np.float32)
    samples, labels = predict.find_test_set(folder, "test_share" in keys, model)
    count = len(labels)
    assert count > 0 and labels == values[-count:].tolist(), (labels, values[-count:])
    ours = values[:-count].reshape(count, *model["preprocessing"]["input"])
    for i in range(count):
        theirs = predict.make_input(samples[i], model)
        assert theirs.dtype == np.float32, theirs.dtype
        far = 255 * np.abs(ours[i] - theirs).max() * min(model["preprocessing"]["deviation"] or [0.1])
        assert np.array_equal(ours[i], theirs) or far < bytes_apart, f"{samples[i]}: {far} of 255"
    print(f"{kind} {' '.join(words)}: {count} samples of {'x'.join(map(str, ours.shape[1:]))}, every float the same")


def refused(word, call, *arguments):
    try:
        call(*arguments)
    except predict.Problem as problem:
        assert word in str(problem) and "\n" not in str(problem), problem
        return
    raise AssertionError(f"{arguments} was taken")


def check_pictures(folder, draw):
    """What tgd calls damaged, and a picture of another size than the training's, which are windows of what is stored."""
    model = {"preprocessing": {"samples": "bytes", "input": [3, 24, 24], "resize": 0}, "data": {"stored": [3, 32, 32]}}
    folder.mkdir()
    image = drawn(96, 64, draw)
    image.save(folder / "large.png")
    found = predict.picture(str(folder / "large.png"), model)
    small = np.asarray(image.resize((48, 32), Image.BILINEAR))[4:28, 12:36]
    assert np.array_equal(found, small.transpose(2, 0, 1))
    for kind in ("GIF", "BMP", "TIFF", "WEBP"):
        image.save(folder / "other.png", format=kind)
        refused("other.png", predict.picture, str(folder / "other.png"), model)
    whole = (folder / "large.png").read_bytes()
    for length in (0, 7, 20, 40, 60, len(whole) // 2):
        (folder / "cut.png").write_bytes(whole[:length])
        refused("cut.png", predict.picture, str(folder / "cut.png"), model)


def check_files(folder, draw):
    model = {"preprocessing": {"samples": "bytes"}, "data": {"kind": "cifar10", "stored": [3, 32, 32], "test_share": 0}}
    folder.mkdir()
    file = folder / "test_batch.bin"
    for length in (0, 3072, 3074):
        file.write_bytes(draw.randbytes(length))
        refused("3073", predict.find_test_set, folder, False, model)
    packed = gzip.compress(bytes(3073))
    for damaged in (packed[:5], packed[:20], packed[:-4], packed[:10] + b"\xff" * 20, packed[:-8] + bytes(8)):
        file.write_bytes(damaged)
        refused("test_batch.bin cannot be read", predict.find_test_set, folder, False, model)
    file.write_bytes(bytes(2 * 3073))
    network = lambda batch: np.eye(10, dtype=np.float32)[[0] * len(batch)]  # noqa: E731
    options, said = argparse.Namespace(test=folder, held_back=False, batch=8, top=1), io.StringIO()
    model["preprocessing"] |= {"input": [3, 32, 32], "resize": 0, "normalization": "none"}
    model["evaluation"], model["data"]["damaged"] = {"step": 1, "accuracy": None, "loss": None, "samples": 2}, "fatal"
    with contextlib.redirect_stdout(said):
        assert predict.test(network, model, options) == 0
    assert said.getvalue().splitlines()[1:] == ["tgd reported no accuracy (model.json)"], said.getvalue()
    file.unlink()
    for name in ("t10k-images.a", "t10k-images.b", "t10k-labels"):
        (folder / name).touch()
    refused("t10k-images.a and t10k-images.b", predict.find_test_set, folder, False, model)


def main(program):
    with tempfile.TemporaryDirectory() as made:
        folder, draw, out = pathlib.Path(made), random.Random(1), pathlib.Path(made) / "out"
        write_large(folder / "large", draw)
        compare(program, out, "folder", folder / "large", BYTES, size=224)
        compare(program, out, "folder", folder / "large", BYTES, size=64, resize=70, channels=1, normalization="per-image")
        compare(program, out, "folder", folder / "large", BYTES, size=64, resize=75, resize_shape="square")
        write_odd(folder / "odd")
        compare(program, out, "folder", folder / "odd", BYTES, size=24, test_share=0.4, seed=7, normalization="symmetric")
        compare(program, out, "folder", folder / "odd", BYTES, size=20, resize=20, channels=1, test_share=0.3, seed=2**40 + 3)
        write_lists(folder / "listed", draw)
        for form in ("words", "folders", "numbers", "odd"):
            compare(program, out, "folder", folder / "listed" / form)
        os.remove(folder / "listed" / "words" / "test.txt")
        compare(program, out, "folder", folder / "listed" / "words", test_share=0.5)
        write_arrays(folder / "arrays", draw)
        for normalization in ("measured", "none", "symmetric", "per-image"):
            compare(program, out, "npy", folder / "arrays" / "bytes", normalization=normalization)
        compare(program, out, "npy", folder / "arrays" / "bytes", resize=31)
        compare(program, out, "npy", folder / "arrays" / "bytes", resize=24, resize_shape="square")
        compare(program, out, "npy", folder / "arrays" / "floats", test_share=0.25, seed=3)
        compare(program, out, "idx", folder / "arrays")
        compare(program, out, "mnist", folder / "arrays")
        compare(program, out, "mnist", folder / "arrays" / "mnist")
        for _ in write_names(folder / "names", draw):
            compare(program, out, "npy", folder / "names")
        (folder / "large" / "test.txt").write_text("notes of somebody\n")  # no train.txt: the folders count
        compare(program, out, "folder", folder / "large", BYTES, size=32)
        check_pictures(folder / "pictures", draw)
        check_files(folder / "files", draw)
        shutil.move(folder / "large", folder / "arrays")  # a data-dir with the data of others
        compare(program, out, "cifar10", folder / "arrays")


main(sys.argv[1])
