#!/usr/bin/env python3
"""Runs the model beside this file in PyTorch, as tgd evaluates it: classifies pictures, or scores a test set.

  python predict.py PICTURE...          prints picture, class, probability, a line each
  python predict.py SAMPLES.npy         the same for each sample of an array
  python predict.py --test FOLDER       prints the accuracy on a test set, counted as tgd does

FOLDER is a data-dir, or a test set alone: a folder per class, there or in test/ or val/ (or as test.txt lists them);
x_test.npy and y_test.npy; MNIST's or CIFAR's test files. If tgd held back a part of the data itself (test-share),
--held-back scores that part of the same data.

Needs PyTorch and numpy, and Pillow for pictures: pip install torch numpy pillow, or on Debian sudo apt-get install
python3-torch python3-pil. `tgctl fetch` writes this file, model.json and model.safetensors into one folder, where they
have to stay together.
"""

import argparse
import concurrent.futures
import gzip
import importlib
import json
import math
import os
import pathlib
import re
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent


# The exceptions that reading a damaged file may raise.
UNREADABLE = (OSError, EOFError, SyntaxError, ValueError, IndexError, struct.error, zlib.error)


class Problem(Exception):
    """A line that says what went wrong and what to do."""


class Missing:
    """A stand-in for a package that is not installed: raises a Problem when it is used."""

    def __init__(self, what, pip, debian):
        self.__dict__["sentence"] = f"{what} is missing: pip install {pip}, or on Debian sudo apt-get install {debian}"

    def __getattr__(self, name):
        raise Problem(self.sentence)


def package(name, *words):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return Missing(*words)


np = package("numpy", "numpy", "numpy", "python3-numpy")
Image = package("PIL.Image", "Pillow", "pillow", "python3-pil")
torch = package("torch", "PyTorch", "torch", "python3-torch")

# --- the network: model.json's graph, in evaluation. Values are N x C x H x W; a row is one pixel large. ---


def count_windows(one, size, before, after):
    """The windows along one side. With `ceil` a last window counts if it begins in the image or the padding before it."""
    space = size + before + after - one["dilation"] * (one["kernel"] - 1) - 1
    count = (space + (one["stride"] - 1 if one["ceil"] else 0)) // one["stride"] + 1
    return count - 1 if one["ceil"] and (count - 1) * one["stride"] >= size + before else count


def padded(one, x, value):
    """Pads x to exactly the area that the windows cover."""

    def missing(size, before, after):
        covered = (count_windows(one, size, before, after) - 1) * one["stride"] + one["dilation"] * (one["kernel"] - 1) + 1
        return covered - before - size

    top, left, bottom, right = one["padding"]
    below, beyond = missing(x.shape[2], top, bottom), missing(x.shape[3], left, right)
    return torch.nn.functional.pad(x, (left, beyond, top, below), value=value) if any((top, left, below, beyond)) else x


def convolution(one, tensor, x):
    weight, bias = tensor(one["weight"]), tensor(one.get("bias"))
    return torch.nn.functional.conv2d(padded(one, x, 0.0), weight, bias, one["stride"], 0, one["dilation"], one["groups"])


def batch_normalization(one, tensor, x):
    mean, variance, gamma, beta = (tensor(one.get(key)) for key in ("mean", "variance", "gamma", "beta"))
    gamma = torch.ones_like(mean) if gamma is None else gamma
    return torch.nn.functional.batch_norm(x, mean, variance, gamma, beta, False, 0.0, one["epsilon"])


def local_response_normalization(one, tensor, x):
    """TensorFlow's form: alpha is not divided by the window."""
    count, channels, height, width = x.shape
    part, reach = channels // one["groups"], one["radius"]
    squares = (x * x).reshape(count * one["groups"], part, height, width)
    squares = torch.nn.functional.pad(squares, (0, 0, 0, 0, reach, reach))
    sums = sum(squares[:, k : k + part] for k in range(2 * reach + 1)).reshape(x.shape)
    return x / (one["bias"] + one["alpha"] * sums) ** one["beta"]


def max_pooling(one, tensor, x):
    return torch.nn.functional.max_pool2d(padded(one, x, -math.inf), one["kernel"], one["stride"], 0, one["dilation"])


def adaptive_average(one, tensor, x):
    return torch.nn.functional.adaptive_avg_pool2d(x, (one["height"], one["width"]))


def dense(one, tensor, x):
    return torch.nn.functional.linear(x.flatten(1), tensor(one["weight"]), tensor(one.get("bias")))[:, :, None, None]


OPERATORS = {
    "convolution": convolution,
    "batch-normalization": batch_normalization,
    "local-response-normalization": local_response_normalization,
    "max-pooling": max_pooling,
    "adaptive-average": adaptive_average,
    "dense": dense,
    "relu": lambda one, tensor, x: torch.relu(x),
    "dropout": lambda one, tensor, x: x,  # in training only
    "concat": lambda one, tensor, *xs: torch.cat(xs, 1),
    "add": lambda one, tensor, x, y: x + y,
    "flatten": lambda one, tensor, x: x.reshape(x.shape[0], -1, 1, 1),
}


class Network:
    """model.json's graph with its tensors (arrays by name)."""

    def __init__(self, graph, tensors, device="cpu"):
        self.operators, self.output = graph["operators"], graph["output"]
        for one in self.operators:
            if one["kind"] not in OPERATORS:
                raise Problem(f"model.json has an operator {one['kind']}, which this predict.py does not know; fetch the run with the nodes' tgctl")
            for name in (one.get(key) for key in ("weight", "bias", "gamma", "beta", "mean", "variance")):
                if isinstance(name, str) and name not in tensors:
                    raise Problem(f"model.safetensors has no {name}, which {one['name']} needs")
        torch.backends.cudnn.allow_tf32 = False  # float32 as tgd means it
        self.device = device
        try:
            self.tensors = {name: torch.from_numpy(value).to(device) for name, value in tensors.items()}
        except (RuntimeError, AssertionError) as error:
            raise Problem(f"--device {device}: {str(error).splitlines()[0]}") from None

    def __call__(self, batch):
        """Returns the logits of an array N x C x H x W as an array."""
        last = {value: i for i, one in enumerate(self.operators) for value in one["inputs"]}
        with torch.no_grad():
            values = {"input": torch.from_numpy(batch).to(self.device)}
            for i, one in enumerate(self.operators):
                values[one["name"]] = OPERATORS[one["kind"]](one, lambda name: self.tensors.get(name), *(values[name] for name in one["inputs"]))
                for name in set(one["inputs"]):
                    if last[name] == i:
                        del values[name]
            return values[self.output].flatten(1).cpu().numpy()


# --- the input: model.json's preprocessing, to the bit ---


def plain(image):
    """Converts to grey or RGB with 8 bits: 16 bits keep their high byte, alpha is dropped."""
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def resized(image, shorter, square):
    width, height = image.size
    if shorter == 0:
        return image
    if square:
        return image if width == height == shorter else image.resize((shorter, shorter), Image.BILINEAR)
    if shorter == min(width, height):
        return image
    size = (shorter, shorter * height // width) if width <= height else (shorter * width // height, shorter)
    return image.resize(size, Image.BILINEAR)


def is_square(recipe):
    return recipe.get("resize-shape") == "square"  # absent in models of an older tgd


def centre(pixels, height, width):
    top, left = (pixels.shape[1] - height) // 2, (pixels.shape[2] - width) // 2
    return pixels[:, top : top + height, left : left + width]


def picture(path, model):
    """Returns a picture's bytes as the network sees them: C x H x W."""
    recipe, stored = model["preprocessing"], model["data"]["stored"]
    channels, height, width = recipe["input"]
    if recipe["samples"] == "floats" or channels not in (1, 3):
        raise Problem(f"{path}: this model takes samples of {channels}x{height}x{width} numbers in a .npy, not pictures")
    try:
        with Image.open(path, formats=("JPEG", "PNG")) as image:
            shorter = recipe["resize"]
            if shorter == 0 and [image.height, image.width] != stored[1:]:
                shorter = max(stored[1:])  # scaled to the training pictures' size
            if shorter != 0 and image.format in ("JPEG", "MPO"):
                image.draft("RGB", (shorter, shorter))
            image = resized(plain(image).convert("L" if channels == 1 else "RGB"), shorter, is_square(recipe))
    except (*UNREADABLE, Image.DecompressionBombError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise Problem(said if str(path) in said else f"{path} cannot be read: {said}") from None
    return centre(np.atleast_3d(np.asarray(image)).transpose(2, 0, 1), height, width)


def array_bytes(sample, recipe):
    """The same for a sample of bytes from an array."""
    shorter, (_, height, width) = recipe["resize"], recipe["input"]
    if shorter != 0:
        sample = np.stack([np.asarray(resized(Image.fromarray(np.ascontiguousarray(plane)), shorter, is_square(recipe))) for plane in sample])
    return centre(sample, height, width)


def normalized(sample, recipe):
    """Normalizes bytes or floats, C x H x W, to float32. Rounds once per operation and sums value by value, as tgd does."""
    kind = recipe["normalization"]
    x = sample.astype(np.float32)
    if recipe["samples"] == "bytes":
        x = x / np.float32(255)
    if kind == "symmetric":
        return (x - np.float32(0.5)) * np.float32(2)
    if kind in ("given", "measured"):
        mean, deviation = (np.array(recipe[key], np.float32)[:, None, None] for key in ("mean", "deviation"))
        return (x - mean) / deviation
    if kind == "per-image":
        values = x.astype(np.float64)
        mean = np.cumsum(values)[-1] / x.size
        deviation = math.sqrt(np.cumsum((values - mean) * (values - mean))[-1] / x.size)
        return ((values - mean) / max(deviation, 1 / math.sqrt(x.size))).astype(np.float32)
    return x


def make_input(sample, model):
    """Returns the network's input for a path or for a sample of an array."""
    recipe = model["preprocessing"]
    if not isinstance(sample, np.ndarray):
        return normalized(picture(sample, model), recipe)
    return normalized(array_bytes(sample, recipe) if recipe["samples"] == "bytes" else sample, recipe)


# --- files ---


def read_tensors(path):
    """Reads a float32 safetensors file: arrays by name, and metadata."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = bytearray(file.read())
    metadata = header.pop("__metadata__", {})
    arrays = {name: np.frombuffer(values, "<f4", math.prod(one["shape"]), one["data_offsets"][0]) for name, one in header.items()}
    return {name: array.reshape(header[name]["shape"]) for name, array in arrays.items()}, metadata


def read_bytes(path):
    """Reads a file, which may be a .gz."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except UNREADABLE as error:
        raise Problem(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_array(path):
    """Reads a .npy or IDX file."""
    try:
        if str(path).endswith(".npy"):
            return np.load(path, allow_pickle=False)
        raw = read_bytes(path)
        shape = np.frombuffer(raw, ">u4", raw[3], 4)
        return np.frombuffer(raw, IDX_TYPES[raw[2]], offset=4 + 4 * raw[3]).reshape(shape)
    except (*UNREADABLE, KeyError) as error:
        raise Problem(f"{path} cannot be read as an array: {error}") from None


def samples_of(array, path, model):
    """Returns an array of samples, or one sample, as N x C x H x W."""
    shape, floats = model["data"]["stored"], model["preprocessing"]["samples"] == "floats"
    if array.dtype.kind == "f" and array.dtype != np.float32:
        array = array.astype(np.float32)
    if floats != (array.dtype.kind == "f") or not floats and array.dtype != np.uint8:
        raise Problem(f"{path} holds {array.dtype}, and this model takes {'floats' if floats else 'bytes (uint8)'}")
    if array.ndim == 4 and array.shape[1] not in (1, 3) and array.shape[3] in (1, 3):
        array = array.transpose(0, 3, 1, 2)
    elif array.ndim == 3:
        array = array[None] if list(array.shape) == shape else array[:, None]
    elif array.ndim == 2:
        array = array[None, None] if list(array.shape) == shape[1:] else array[:, :, None, None]
    elif array.ndim == 1:
        array = array[None, :, None, None] if array.shape[0] == shape[0] != 1 else array[:, None, None, None]
    if array.ndim != 4 or array.shape[1] != shape[0] or shape[1] != 0 and list(array.shape[2:]) != shape[1:]:  # 0: sizes differ
        raise Problem(f"{path} has samples of {'x'.join(map(str, array.shape[1:]))}, and this model takes {'x'.join(map(str, shape))}")
    return array


# --- test sets: each function returns (samples, labels) from a folder, or None ---


class Drawn:
    """tgd's random numbers (Philox 4x32-10) for one class of held-back samples."""

    def __init__(self, seed, label):
        self.seed, self.counter, self.words = seed, [0, label, 0x40000005, 0], []

    def below(self, bound):
        while True:
            if not self.words:
                (a, b, c, d), low, high = self.counter, self.seed & 0xFFFFFFFF, self.seed >> 32
                for _ in range(10):
                    first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
                    a, b, c, d = second >> 32 ^ b ^ low, second & 0xFFFFFFFF, first >> 32 ^ d ^ high, first & 0xFFFFFFFF
                    low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
                self.words = [d, c, b, a]
                self.counter[0] += 1
            word = self.words.pop()
            if word >= 2**32 % bound:
                return word % bound


def held_back(labels, model):
    """Returns the ascending indices of the samples that tgd's test-share held back: a share of each class."""
    share, held, by_class = model["data"]["test_share"], [], {}
    for i, label in enumerate(labels):
        by_class.setdefault(int(label), []).append(i)
    for label, of_class in by_class.items():
        drawn = Drawn(model["data"]["seed"], label)
        for i in range(min(math.floor(len(of_class) * share + 0.5), len(of_class) - 1)):
            other = i + drawn.below(len(of_class) - i)
            of_class[i], of_class[other] = of_class[other], of_class[i]
            held.append(of_class[i])
    return sorted(held)


def is_picture(name):
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in (".jpg", ".jpeg", ".png")


def by_class(folder, prefix):
    """Returns (file, class) for the pictures in a folder per class."""
    found = []
    for name in os.listdir(folder / prefix):
        if not name.startswith(".") and (folder / prefix / name).is_dir():
            for place, folders, files in os.walk(folder / prefix / name):
                folders[:] = [one for one in folders if not one.startswith(".")]
                found += [(os.path.relpath(os.path.join(place, file), folder), name) for file in files if is_picture(file)]
    return found


def by_list(path):
    """Returns (file, class) for the lines of a list: the class follows a tab, or is a number after a picture's name, or its folder."""
    found = []
    for line in filter(None, (os.fsdecode(one.removesuffix(b"\r")) for one in path.read_bytes().split(b"\n"))):
        file, tab, name = line.rpartition("\t")
        number = re.fullmatch(r"(.+) ([0-9]{1,9})", line)
        if tab:
            found.append((file, name))
        elif number and is_picture("x" + number[1]):
            found.append((number[1], number[2]))
        else:
            found.append((line, os.path.basename(os.path.dirname(line))))
    return found


def files_of(folder, held):
    """Yields the results of by_class and by_list in tgd's order of preference."""
    listed, parts = (folder / "train.txt").exists(), ("train",) if held else ("test", "val")
    for lists in (listed,) if listed or held else (False, True):  # a list of a test set alone comes last
        for part in parts:
            if lists and (folder / f"{part}.txt").exists():
                yield by_list(folder / f"{part}.txt")
            elif not lists and (folder / part).is_dir():
                yield by_class(folder, part)
    yield by_class(folder, "")


def find_folder(folder, held, model):
    files = next(filter(None, files_of(folder, held)), None)
    if not files:
        return None
    if model["classes"] is None:
        raise Problem("model.json does not name the classes, which tgd leaves out if they take more than 4 MiB")
    number = {name: i for i, name in enumerate(model["classes"])}
    known = lambda name: os.fsencode(name).decode(errors="replace")  # noqa: E731  as model.json has it
    for file, name in files:
        if known(name) not in number:
            few = ", ".join(model["classes"][:8]) + (", ..." if len(number) > 8 else "")
            hint = "; --held-back scores what tgd held back" if model["data"]["test_share"] and not held else ""
            raise Problem(f"{folder / file} is of a class {known(name)}, which this model does not know; it knows {few}{hint}")
    files.sort(key=lambda one: os.fsencode(one[0]))
    return [str(folder / file) for file, _ in files], [number[known(name)] for _, name in files]


def first_file(folders, names):
    return next((folder / name for folder in folders for name in names if (folder / name).exists()), None)


def read_pair(samples, labels, model):
    """Reads a pair of arrays; None if one is missing."""
    if not samples or not labels:
        return None
    array, classes = samples_of(read_array(samples), samples, model), read_array(labels).ravel()
    if len(array) != len(classes):
        raise Problem(f"{samples} has {len(array)} samples and {labels} has {len(classes)} labels")
    return array, classes


def npy_names(part, letters, words):
    """Returns the names in the order in which tgd looks for them."""
    if not part:
        return [f"{name}.npy" for name in (*letters, *words)]
    lettered = [f"{name}.npy" for letter in letters for between in "_-" for name in (letter + between + part, part + between + letter)]
    return lettered + [f"{part}{between}{word}.npy" for word in words for between in "_-"]


def find_npy(folder, held, model):
    for part in ("train", "") if held else ("test", "val", ""):
        samples, labels = npy_names(part, "xX", ("images", "features")), npy_names(part, "yY", ("labels",))
        if found := read_pair(first_file([folder], samples), first_file([folder], labels), model):
            return found
    return None


def find_idx(folder, held, model):
    """Finds IDX files by a word in their names."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    for part in ("train-", "") if held else ("t10k-", "test-"):
        both = [[name for name in names if part + word in name] for word in ("images", "labels")]
        if not all(both):
            continue
        for several in both:
            if len(several) > 1:
                raise Problem(f"{folder} has both {several[0]} and {several[1]}; put the files of one set into a folder of their own")
        return read_pair(folder / both[0][0], folder / both[1][0], model)
    return None


def mnist_names(part, rank):
    return [f"{part}{between}idx{rank}-ubyte{ending}" for ending in ("", ".gz") for between in "-."]


def find_mnist(folder, held, model):
    places = (folder, folder / "mnist")
    return read_pair(first_file(places, mnist_names("t10k-images", 3)), first_file(places, mnist_names("t10k-labels", 1)), model)


CIFAR = {"cifar10": ("cifar-10-batches-bin", "test_batch.bin", 1), "cifar100": ("cifar-100-binary", "test.bin", 2)}


def find_cifar(folder, held, model):
    """Finds the CIFAR files of the model's kind, or of either."""
    kind = model["data"]["kind"]
    for place, name, label_bytes in [CIFAR[kind]] if kind in CIFAR else CIFAR.values():
        path = first_file((folder, folder / place), [name])
        if held or not path:
            continue
        raw, size = read_bytes(path), label_bytes + 3072
        if not raw or len(raw) % size != 0:
            raise Problem(f"{path} has {len(raw)} bytes, which is not a whole number of records of {size}; fetch CIFAR's binary version again")
        records = np.frombuffer(raw, np.uint8).reshape(-1, size)
        return samples_of(records[:, label_bytes:].reshape(-1, 3, 32, 32), path, model), records[:, label_bytes - 1]
    return None


# By what the model was trained on: what is looked for first.
FINDERS = {"folder": find_folder, "idx": find_idx, "mnist": find_mnist, **dict.fromkeys(CIFAR, find_cifar)}


def find_test_set(folder, held, model):
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise Problem(f"{folder} is not a folder")
    for find in dict.fromkeys((FINDERS.get(model["data"]["kind"], find_npy), find_npy, find_idx, find_cifar, find_folder)):
        try:
            found = find(folder, held, model)
        except OSError as error:
            raise Problem(f"{error.filename or folder} cannot be read: {error.strerror or error}") from None
        if found is None:
            continue
        samples, labels = found
        if held:
            chosen = held_back(labels, model)
            samples = samples[chosen] if isinstance(samples, np.ndarray) else [samples[i] for i in chosen]
            labels = [labels[i] for i in chosen]
        return samples, [int(label) for label in labels]
    raise Problem(f"{folder} holds no test set: a folder per class, x_test.npy and y_test.npy, or the test files of MNIST or CIFAR")


# --- commands ---


def logits_of(network, samples, model, batch):
    """Yields each sample's row of logits, or its Problem."""

    def attempt(sample):
        try:
            return make_input(sample, model)
        except Problem as problem:
            return problem

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(samples), batch):
            inputs = list(pool.map(attempt, samples[first : first + batch]))
            good = [one for one in inputs if not isinstance(one, Problem)]
            rows = iter(network(np.ascontiguousarray(np.stack(good))) if good else ())
            for one in inputs:
                yield one if isinstance(one, Problem) else next(rows)


def print_note(text):
    print(f"predict.py: {text}", file=sys.stderr)


def predict(network, model, options):
    """Returns the exit status: 1 if something could not be read."""
    names, status = model["classes"] or [], 0
    pictures, arrays = [path for path in options.pictures if not path.endswith(".npy")], {}
    for path in options.pictures:
        if path.endswith(".npy"):
            arrays[path] = samples_of(read_array(path), path, model)
    sets = [(pictures, pictures)] + [([f"{path}[{i}]" for i in range(len(array))], array) for path, array in arrays.items()]
    for titles, samples in sets:
        for title, row in zip(titles, logits_of(network, samples, model, options.batch)):
            if isinstance(row, Problem):
                print_note(row)
                status = 1
                continue
            powers = np.exp(row.astype(np.float64) - row.max())
            best = np.argsort(-row, kind="stable")[: options.top]
            named = (f"{names[c] if c < len(names) else c}\t{powers[c] / powers.sum():.4f}" for c in best)
            print(title, *named, sep="\t", flush=True)
    return status


def test(network, model, options):
    samples, labels = find_test_set(options.test, options.held_back, model)
    correct = among = total = left_out = 0
    loss = 0.0
    for label, row in zip(labels, logits_of(network, samples, model, options.batch)):
        if isinstance(row, Problem):
            print_note(f"left out: {row}")
            left_out += 1
            continue
        if not 0 <= label < len(row):
            raise Problem(f"{options.test} has label {label}, and the model has {len(row)} classes")
        exact = row.astype(np.float64)
        loss += math.log(np.exp(exact - exact.max()).sum()) - (exact[label] - exact.max())
        correct += int(row.argmax() == label)  # the first of equal ones
        among += int(label in np.argsort(-row, kind="stable")[: options.top])
        total += 1
    if total == 0:
        raise Problem(f"{options.test}: no sample could be read")
    top = f", top-{options.top} {100 * among / total:.2f} %" if options.top > 1 else ""
    print(f"accuracy {100 * correct / total:.2f} % of {total}{top}, loss {loss / total:.4f}")
    own = model["evaluation"]
    if not own or own["accuracy"] is None:
        print("tgd reported no accuracy (model.json)")
    else:
        its_top = f", top-5 {100 * own['accuracy_5']:.2f} %" if options.top == 5 and "accuracy_5" in own else ""
        its_loss = "" if own["loss"] is None else f", loss {own['loss']:.4f}"
        of = f" of {own['samples']}" if "samples" in own else ""  # damaged ones may have been skipped
        print(f"tgd reported {100 * own['accuracy']:.2f} %{of} at step {own['step']}{its_top}{its_loss}")
    if model["data"]["test_share"] and not options.held_back:
        print_note(f"tgd held back {model['data']['test_share']:g} of its data and scored that part; --held-back does the same")
    return int(left_out > 0 and model["data"]["damaged"] != "skip")


def load_model():
    try:
        model = json.loads((HERE / "model.json").read_text(encoding="utf-8"))
        tensors, metadata = read_tensors(HERE / "model.safetensors")
    except (OSError, ValueError) as error:
        raise Problem(f"predict.py needs model.json and model.safetensors in its folder: {error}") from None
    if metadata.get("digest") != model["digest"]:
        raise Problem("model.json and model.safetensors are from different states; fetch them together")
    return model, tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help="a JPEG or PNG, or samples in a .npy")
    parser.add_argument("--test", metavar="FOLDER", help="score a test set")
    parser.add_argument("--held-back", action="store_true", help="score only the part of FOLDER that tgd's test-share held back")
    parser.add_argument("--top", type=int, default=1, metavar="N", help="the N most likely classes")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--batch", type=int, default=64, metavar="N", help="samples per batch")
    options = parser.parse_args()
    if bool(options.pictures) == bool(options.test):
        parser.error("give pictures, or --test FOLDER")
    if options.batch < 1 or options.top < 1:
        parser.error("--batch and --top are 1 or more")
    sys.stdout.reconfigure(errors="backslashreplace")  # file names may be any bytes
    try:
        model, tensors = load_model()
        if options.held_back and not model["data"]["test_share"]:
            raise Problem("--held-back: nothing was held back, because the data have a test set")
        network = Network(model["graph"], tensors, options.device)
        return (test if options.test else predict)(network, model, options)
    except Problem as problem:
        print_note(problem)
        return 1
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
