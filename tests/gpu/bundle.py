"""One folder with all that the checks need on a machine that has the CUDA driver and toolkit, cuDNN and Python with PyTorch,
and nothing else: programs, module, the libraries that they need but for the C library and NVIDIA's own, and these scripts."""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARRIED = "build/carried"  # the programs' place in what is unpacked: as in a build folder, and lib/
PROGRAMS = ("daemon/tgd", "ctl/tgctl", "tests/gpu/tgd_gpu_check", "engine/tgd-cuda.so")
SCRIPTS = ("tests/gpu/*", "tests/process/*.py", "tests/paper/networks.py")
# The C library's parts belong to the machine's kernel and loader, the CUDA libraries to its driver.
LEFT = re.compile(
    r"(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libutil|libnsl|libnss\w*|libanl|libcuda|libcudart|libcudnn\w*|libcublas\w*|libnv\w+|libcupti)\b"
)
MOST_BYTES = 30 << 20
START = """#!/bin/sh
# Unpacks what lies beside it into a folder of its own, once, and runs it: tests/gpu/run says what it may be given.
here=$(cd "$(dirname "$0")" && pwd)
python=${{PYTHON:-python3}}
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
if [ "$(printf '%s\n' {glibc} "$glibc" | sort -V | head -n1)" != {glibc} ]; then
  echo "these programs need glibc {glibc}, and this machine has ${{glibc:-none that getconf knows}}" >&2
  exit 2
fi
to=${{TMPDIR:-/tmp}}/tgd-gpu-{digest}
if [ ! -e "$to/whole" ]; then
  mkdir -p "$to" || exit 2
  tar -xJf "$here/{archive}" -C "$to" 2>/dev/null ||
    "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$here/{archive}" "$to" || exit 2
  touch "$to/whole"
fi
exec "$python" "$to/tests/gpu/run" "$@"
"""


def libraries(program):
    """Name and path of each library that a program needs."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    found = re.findall(r"^\s*(\S+) => (\S+)", done.stdout, re.M)
    for name, path in found:
        if path == "not" and not LEFT.match(name):
            raise SystemExit(f"{program} needs {name}, which is not here")
    return [(name, pathlib.Path(path)) for name, path in found if not LEFT.match(name)]


def glibc_of(files):
    """The least version of the C library that has all they ask for."""
    asked = set()
    for file in files:
        said = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
        asked |= {tuple(map(int, version.split("."))) for version in re.findall(r"\(?GLIBC_([\d.]+)\)?", said)}
    return ".".join(map(str, max(asked)))


def pack(to, build, preset=6):
    missing = [name for name in PROGRAMS if not (build / name).exists()]
    if [name for name in missing if name != "engine/tgd-cuda.so"]:
        print(f"missing in {build}: {', '.join(missing)}; build them: cmake --preset cuda && ninja -C {build} tgd tgctl tgd_gpu_check tgd_cuda")
        return 2
    if missing:
        print(f"WITHOUT A MODULE: {build} has no {missing[0]}; what is packed shows only that it starts")
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        carried = stage / CARRIED
        (carried / "lib").mkdir(parents=True)
        for name in PROGRAMS:
            if name in missing:
                continue
            (carried / name).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["strip", "-o", carried / name, build / name], check=True)
            for library, path in libraries(build / name):
                if not (carried / "lib" / library).exists():
                    subprocess.run(["strip", "--strip-unneeded", "-o", carried / "lib" / library, path.resolve()], check=True)
        glibc = glibc_of(path for path in carried.rglob("*") if path.is_file())
        for pattern in SCRIPTS:
            for path in ROOT.glob(pattern):
                if path.is_file() and not path.name.startswith("test_"):
                    (stage / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, stage / path.relative_to(ROOT))
        archive = to / "gpu.tar.xz"
        with tarfile.open(archive, "w:xz", preset=preset) as file:
            for path in sorted(stage.iterdir()):
                file.add(path, path.name)
    size = archive.stat().st_size
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    (to / "run").write_text(START.format(digest=digest, archive=archive.name, glibc=glibc))
    (to / "run").chmod(0o755)
    print(f"{to}: {size / 2**20:.1f} MiB; needs glibc {glibc}; there: {to.name}/run --out OUT")
    if size > MOST_BYTES:
        print(f"that is more than {MOST_BYTES >> 20} MiB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
