#!/usr/bin/env python3
"""The arrows between folders (README, "Layers"): every include of the project points the allowed way, every third-party
library is met only where it may be, includes are root-relative, and every source's own header comes first."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("kernels", "schema", "engine", "daemon", "ctl")

# folder -> what it may include of the project
MAY_USE = {
    "kernels/base": {"kernels/base"},
    "kernels": {"kernels"},
    "schema": {"schema", "kernels/base"},
    "engine": {"engine", "kernels"},
    "daemon": {"daemon", "engine", "kernels", "schema"},
    "ctl": {"ctl", "schema", "kernels/base"},
}
# folder -> third-party headers it may meet (prefixes of the include's path)
THIRD_PARTY = {
    "kernels": ("immintrin.h",),
    "schema": ("capnp/", "kj/", "boost/program_options"),
    "engine": ("dnnl.hpp", "dnnl.h", "oneapi/dnnl", "omp.h", "zlib.h", "nlohmann/"),
    "daemon": ("zmq", "nlohmann/"),
    "ctl": ("zmq", "nlohmann/", "boost/program_options"),
}
KNOWN_THIRD_PARTY = ("capnp/", "kj/", "boost/", "dnnl", "oneapi/", "omp.h", "zlib.h", "nlohmann/", "zmq", "cuda", "cudnn",
                     "cublas", "immintrin.h", "gtest/", "gmock/")
# What decides knows no clock, socket or thread.
PURE = ("daemon/membership", "daemon/exchange", "daemon/forecast/step_model", "daemon/forecast/predict", "daemon/forecast/forecast", "daemon/forecast/machine", "daemon/mesh/probe/burst_meter", "daemon/mesh/probe/link_probe",
        "daemon/mesh/probe/round_trips", "daemon/run/straggler")
IMPURE = ("thread", "mutex", "chrono", "condition_variable", "zmq", "atomic", "sys/", "unistd.h", "fstream", "filesystem", "random")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                yield path.relative_to(ROOT)


def includes(path):
    text = (ROOT / path).read_text()
    return [(kind, name) for kind, name in INCLUDE.findall(text)]


def layer_of(path):
    text = str(path)
    return "kernels/base" if text.startswith("kernels/base/") else text.split("/")[0]


def violations(path, found):
    layer, folder = layer_of(path), str(path).split("/")[0]
    for kind, name in found:
        top = name.split("/")[0]
        if kind == '"':
            generated = re.fullmatch(r"schema/\w+\.capnp\.h", name)
            if not generated and not (ROOT / name).is_file():
                yield f'{path}: "{name}" is not root-relative or does not exist'
            elif not any(name == use or name.startswith(use + "/") for use in MAY_USE[layer]):
                yield f"{path}: {layer} may not include {name}"
        elif top in FOLDERS and "/" in name:
            generated = re.fullmatch(r"schema/\w+\.capnp\.h", name)
            if not (generated and folder == "schema"):
                yield f"{path}: <{name}> should be quoted"
        elif name.startswith(KNOWN_THIRD_PARTY) and not name.startswith(THIRD_PARTY[folder]):
            yield f"{path}: {folder} may not meet <{name}>"
        if str(path).startswith(PURE) and kind == "<" and name.startswith(IMPURE):
            yield f"{path}: what decides may not include <{name}>"
    if path.suffix == ".cpp":
        own = str(path.with_suffix(".h"))
        if (ROOT / own).is_file() and (not found or found[0][1] != own):
            yield f"{path}: its own header does not come first"


class Arrows(unittest.TestCase):
    def test_every_include_points_the_allowed_way(self):
        paths = list(sources())
        self.assertGreater(len(paths), 50, "found no sources: is this the repository?")
        wrong = [v for path in paths for v in violations(path, includes(path))]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_wrong_arrows_would_be_seen(self):
        path = pathlib.Path("schema/frame/frame_decode.cpp")
        for kind, name in (('"', "daemon/mesh/mesh.h"), ("<", "zmq.hpp"), ('"', "frame.h"), ("<", "dnnl.hpp")):
            self.assertTrue(list(violations(path, [('"', "schema/frame/frame.h"), (kind, name)])), name)
        self.assertTrue(list(violations(pathlib.Path("daemon/exchange/plan.cpp"),
                                        [('"', "daemon/exchange/plan.h"), ("<", "thread")])))

    def test_one_file_makes_peer_bytes_trusted(self):
        users = [str(p) for p in sources() if any("frame.capnp.h" in name for _, name in includes(p))]
        self.assertEqual(sorted(users), ["schema/frame/frame_decode.cpp", "schema/frame/frame_encode.cpp"])
        self.assertNotIn("Reader", (ROOT / "schema/frame/frame_encode.cpp").read_text(), "what is read is read in one file")


if __name__ == "__main__":
    sys.exit(unittest.main())
