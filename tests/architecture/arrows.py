#!/usr/bin/env python3
"""The arrows between folders and between the rooms of daemon/ (daemon/README.md): every include points the allowed way and
never in a circle, every third-party library is met only where it may be, includes are root-relative, every source's own
header comes first, and no file is an orphan."""

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
    "schema": {"schema", "kernels/base", "engine/choices.h"},
    "engine": {"engine", "kernels"},
    "daemon": {"daemon", "engine", "kernels", "schema"},
    "ctl": {"ctl", "schema", "kernels/base", "engine/choices.h", "engine/storage/sha256.h"},
}
# room of daemon/ -> what it may include of daemon/: rooms or single headers. What is not named is the root: main.cpp.
ROOMS = {
    "daemon/membership": set(),
    "daemon/exchange": {"daemon/membership/view.h"},
    "daemon/step": {"daemon/exchange"},
    "daemon/access": set(),
    "daemon/mesh": {"daemon/access"},
    "daemon/mesh/probe": {"daemon/mesh"},
    "daemon/store": {"daemon/membership/voter.h", "daemon/step/replica.h", "daemon/step/state_arrays.h"},
    "daemon/control": {"daemon/membership/lineage.h", "daemon/membership/liveness.h", "daemon/store", "daemon/access", "daemon/step/threads/job_queue.h", "daemon/step/threads/progress.h", "daemon/doctor/diagnose.h"},
    "daemon/doctor": {"daemon/mesh", "daemon/membership/choose_exchange.h", "daemon/run/memory_check.h", "daemon/access", "daemon/step/job_layout.h"},
    "daemon/run": {"daemon/step", "daemon/exchange", "daemon/membership", "daemon/mesh", "daemon/metrics", "daemon/store"},
    "daemon/simulate": {"daemon/step", "daemon/exchange", "daemon/membership/view.h", "daemon/run/first_record.h", "daemon/run/rebuild.h", "daemon/run/prepare.h", "daemon/run/preparation_options.h", "daemon/run/run_numbers.h", "daemon/run/shares.h", "daemon/run/state_metadata.h", "daemon/store"},
    "daemon/metrics": {"daemon/step/threads/progress.h"},
    "daemon/forecast": {"daemon/step", "daemon/exchange", "daemon/membership/choose_exchange.h"},
    "daemon/node": {"daemon"},
}
# folder -> third-party headers it may meet (prefixes of the include's path)
THIRD_PARTY = {
    "kernels": ("immintrin.h", "cuda_runtime"),
    "schema": ("capnp/", "kj/", "nlohmann/", "boost/program_options", "sodium.h"),
    "engine": ("cuda_runtime", "cudnn.h", "cublasLt.h", "dnnl.hpp", "dnnl.h", "oneapi/dnnl", "omp.h", "zlib.h", "nlohmann/", "sodium.h", "jpeglib.h", "jerror.h", "png.h"),
    "daemon": ("zmq", "nlohmann/", "prometheus/", "civetweb.h"),
    "ctl": ("zmq", "nlohmann/", "boost/program_options", "curses.h", "png.h"),
}
KNOWN_THIRD_PARTY = ("capnp/", "kj/", "boost/", "dnnl", "oneapi/", "omp.h", "zlib.h", "jpeglib.h", "jerror.h", "png.h", "nlohmann/", "zmq", "sodium.h", "cuda", "cudnn",
                     "cublas", "immintrin.h", "gtest/", "gmock/", "prometheus/", "civetweb.h", "curses.h")
# What decides knows no clock, socket or thread.
PURE = ("daemon/membership", "daemon/exchange", "daemon/forecast", "daemon/step/job_layout", "daemon/mesh/probe/burst_meter", "daemon/mesh/probe/link_probe",
        "daemon/simulate/simulated_view", "daemon/doctor/diagnose", "daemon/doctor/link_stream", "daemon/doctor/problems", "daemon/doctor/schedule", "daemon/doctor/survey")
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


def room_of(path):
    """The room of daemon/ that a file lies in: the longest that fits; "" for the root, which may use all."""
    return max((room for room in ROOMS if str(path).startswith(room + "/")), key=len, default="")


def may_use(path, name):
    room = room_of(path)
    inside = room and name.startswith("daemon/")
    allowed = ROOMS[room] | {room} if inside else MAY_USE[layer_of(path)]
    if inside and room_of(name) != room and room_of(name).startswith(room + "/"):  # a room does not use its inner room
        return False
    return any(name == use or name.startswith(use + "/") for use in allowed)


def units():
    """unit (a header and its source) -> the units that it includes."""
    graph = {}
    for path in sources():
        own = str(path.with_suffix(""))
        graph.setdefault(own, set()).update(
            name.rsplit(".", 1)[0] for kind, name in includes(path) if kind == '"' and (ROOT / name).is_file() and name.rsplit(".", 1)[0] != own
        )  # fmt: skip
    return graph


def listed():
    """Patterns of the sources that some CMake list builds; a variable stands for any word."""
    for path in [*ROOT.rglob("CMakeLists.txt"), *ROOT.rglob("*.cmake")]:
        folder = path.parent.relative_to(ROOT)
        if "build" in folder.parts:
            continue
        text = re.sub(r"#[^\n]*", "", path.read_text()).replace("${CMAKE_CURRENT_LIST_DIR}/", "").replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
        for name in re.findall(r"[\w./${}-]+\.cpp\b", text):
            parts = re.split(r"\$\{\w+\}", str(folder / name))
            yield re.compile(r"\w+".join(map(re.escape, parts)))


def circle(graph):
    """Some circle of the graph as a list, or nothing."""
    done, way = set(), []

    def walk(node):
        if node in way:
            return way[way.index(node) :] + [node]
        if node in done or node not in graph:
            return None
        way.append(node)
        for following in sorted(graph[node]):
            if found := walk(following):
                return found
        done.add(way.pop())
        return None

    for start in sorted(graph):
        if found := walk(start):
            return found
    return None


def violations(path, found):
    layer, folder = layer_of(path), str(path).split("/")[0]
    for kind, name in found:
        top = name.split("/")[0]
        if kind == '"':
            generated = re.fullmatch(r"schema/\w+\.capnp\.h", name)
            if not generated and not (ROOT / name).is_file():
                yield f'{path}: "{name}" is not root-relative or does not exist'
            elif not may_use(path, name):
                yield f"{path}: {room_of(path) or layer} may not include {name}"
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

    def test_no_circles(self):
        inside = {unit: used for unit, used in units().items() if unit.startswith("daemon/")}
        self.assertIsNone(circle(inside), "files of daemon/ include each other in a circle")
        rooms = {}
        for unit, used in units().items():
            if unit.startswith("daemon/"):
                rooms.setdefault(room_of(unit), set()).update(room_of(one) for one in used if one.startswith("daemon/") and room_of(one) != room_of(unit))
        self.assertEqual(set(ROOMS) - set(rooms), set(), "not every room of daemon/ is there")
        self.assertIsNone(circle(rooms), "rooms include each other in a circle")
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])

    def test_no_orphans(self):
        tests = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*") if path.suffix in (".h", ".cpp")]
        used = {}
        for path in [*sources(), *tests]:
            for _, name in includes(path):
                used.setdefault(name, set()).add(str(path.with_suffix("")))
        orphans = [str(p) for p in sources() if p.suffix == ".h" and not used.get(str(p), set()) - {str(p.with_suffix(""))}]
        built = list(listed())
        orphans += [str(p) for p in [*sources(), *tests] if p.suffix == ".cpp" and not any(one.fullmatch(str(p)) for one in built)]
        self.assertEqual(orphans, [], "nobody includes or builds these")

    def test_wrong_arrows_would_be_seen(self):
        path = pathlib.Path("schema/frame/frame_decode.cpp")
        for kind, name in (('"', "daemon/mesh/mesh.h"), ("<", "zmq.hpp"), ('"', "frame.h"), ("<", "dnnl.hpp")):
            self.assertTrue(list(violations(path, [('"', "schema/frame/frame.h"), (kind, name)])), name)
        self.assertTrue(list(violations(pathlib.Path("daemon/exchange/layout.cpp"),
                                        [('"', "daemon/exchange/layout.h"), ("<", "thread")])))

    def test_one_file_makes_peer_bytes_trusted(self):
        users = [str(p) for p in sources() if any("frame.capnp.h" in name for _, name in includes(p))]
        self.assertEqual(sorted(users), ["schema/frame/frame_decode.cpp", "schema/frame/frame_encode.cpp"])
        self.assertNotIn("Reader", (ROOT / "schema/frame/frame_encode.cpp").read_text(), "what is read is read in one file")


if __name__ == "__main__":
    sys.exit(unittest.main())
