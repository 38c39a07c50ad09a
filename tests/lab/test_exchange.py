"""The lab itself: a small run of tests/lab/exchange gives a verified result, and a wrong model is not verified.

Exit status 77, with the reason, where network namespaces are not permitted (ctest shows a skipped test)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import measure
import shaped

HERE = pathlib.Path(__file__).resolve().parent
PARAMETERS = 1_256_080


def exchange(*arguments):
    done = subprocess.run([sys.executable, HERE / "exchange", "--json", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode == 77:
        sys.exit(77)
    assert done.returncode == 0, f"exchange {arguments} ended with {done.returncode}"
    return json.loads(done.stdout)


def check(result, exchange, zeros):
    print(json.dumps(result, indent=2))
    assert result["verified"] is True
    assert result["compared_files"] == result["nodes"] and result["compared_elements"] == PARAMETERS == result["parameters"]
    assert result["exchange"] == exchange
    assert abs(result["zeros"] - zeros) < 0.01, result["zeros"]
    entropy = result["entropy_bytes_per_step"]
    for sent in [*result["sent_bytes_per_step"], *result["sent_bytes_per_step_by_tgd"]]:
        assert 0.9 * entropy < sent < 3 * entropy, (sent, entropy)
    assert all(peak > PARAMETERS * 4 for peak in result["peak_bytes"])
    assert result["step_seconds"]["least"] <= result["step_seconds"]["median"] <= result["step_seconds"]["most"]


def check_that_its_model_is_told(row):
    """tests/lab/model_error of this row, and of one that took a hundredth: of the same prediction the error is far larger."""
    preset = pathlib.Path(os.environ["TGD"]).resolve().parents[1].name
    quick = row | {"step_seconds": {key: value / 100 for key, value in row["step_seconds"].items()}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        pathlib.Path(path).write_text("\n".join(json.dumps(one, indent=2) for one in (row, quick)))
        command = [sys.executable, HERE / "model_error", "--rows", path, "--build", preset, "--json"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1, done  # one of two is far off
    near, far = (report := json.loads(done.stdout))["rows"]
    assert all(one["predicted_seconds"] > 0 and abs(one["error"] + 1 - one["predicted_seconds"] / one["measured_seconds"]) < 1e-9 for one in (near, far)), report
    assert report["worst"] == max(abs(near["error"]), abs(far["error"])), report


def test_drawn_gradients():
    result = exchange("--model", "lenet", "--nodes", "3", "--steps", "80", "--warm-up", "2", "--rate", "1gbit", "--zeros", "0.92", "--exchange", "sharded", "--set", "link-mbps=1000")  # told: no burst that measures it is counted; many steps: the meter looks every 20 ms
    check(result, "sharded", 0.92)
    assert (result["grain"], result["grain_asked"]) == ("fine", "auto")
    assert result["step_over_bound"] > 0.9, "faster than the wire: the bound or the shaping is wrong"
    check_that_its_model_is_told(result)
    # Float parts, another recipe and decay at the update are in the reference too.
    others = ["last-layer=float32", "min-ternary-size=100", "scaler=repo", "weight-decay=0.01", "weight-decay-path=outside", "optimizer=sgd"]
    settings = [word for other in others for word in ("--set", other)]
    result = exchange("--model", "lenet", "--nodes", "2", "--steps", "4", "--rate", "none", "--exchange", "direct", *settings)
    assert result["verified"] is True and result["exchange"] == "direct" and result["grain"] == "coarse"


def test_plain_tcp_is_beside_the_bound():
    # 6.7 MB from every node: beside that a shaper's bucket is nothing, and neither is Python.
    result = exchange("--model", "lenet", "--nodes", "3", "--steps", "4", "--rate", "100mbit", "--set", "gradients=float32", "--set", "exchange=sharded")
    assert 0.98 < result["plain_tcp_over_bound"] < 2, result["plain_tcp_over_bound"]  # near 1 on a quiet machine


FLOATS = {
    "halves": (["gradients=float16", "exchange=sharded"], "sharded"),
    "halves to all": (["gradients=float16", "exchange=direct"], "direct"),
    "a last layer of halves": (["last-layer=float16", "exchange=sharded"], "sharded"),
    "codes, floats and halves": (["last-layer=float16", "min-ternary-size=100", "exchange=sharded"], "sharded"),
    "each its own scalers": (["scaler-sharing=none"], "direct"),
    "each its own scalers, among floats and halves": (["scaler-sharing=none", "scaler=repo", "last-layer=float16", "min-ternary-size=100"], "direct"),
}


def test_floats_and_own_scalers():
    for what, (keys, expected) in FLOATS.items():
        settings = [word for key in keys for word in ("--set", key)]
        result = exchange("--model", "lenet", "--nodes", "3", "--steps", "4", "--rate", "none", *settings)
        assert result["verified"] is True and result["compared_elements"] == PARAMETERS, what
        assert result["exchange"] == expected, (what, result["exchange"])
        for sent in result["sent_bytes_per_step_by_tgd"]:
            assert 0.9 < sent / result["entropy_bytes_per_step"] < 2.5, (what, sent, result["entropy_bytes_per_step"])


def test_small_steps_are_shaped_finely():
    # 1.25 bits of 61 M parameters are 9.5 MB, of 7 M 1.1 MB to one other, 2.2 MB to several; float32 of 1.8 M 7 MB.
    for model, nodes, rate, keys, grain in (
        ("lenet", 8, "1gbit", [], "fine"),
        ("googlenet-slim", 2, "1gbit", [], "fine"),
        ("googlenet-slim", 8, "50mbit", [], "fine"),
        ("googlenet-slim", 8, "none", [], "coarse"),
        ("googlenet-slim", 8, "50mbit", ["exchange=direct"], "coarse"),
        ("googlenet-slim", 8, "50mbit", ["scaler-sharing=none"], "coarse"),
        ("alexnet", 2, "1gbit", [], "coarse"),
        ("cifarnet", 2, "1gbit", [], "fine"),
        ("cifarnet", 2, "1gbit", ["gradients=float32"], "coarse"),
    ):
        options = types.SimpleNamespace(model=model, nodes=nodes, rate=rate, set=keys, zeros=0.68, steps=1, warm_up=0, exchange="auto")
        assert shaped.grain_for(measure.expected_bytes(options), rate) == grain, (model, nodes, rate, keys)


def test_options_unknown_to_the_reference_are_refused():
    for keys, word in (
        (["optimizer=adam"], "optimizer = adam"),
        (["schedule=polynomial"], "schedule = polynomial"),
        (["float-steps=1"], "float-steps = 1"),
        (["compute=train"], "compute = train"),
        (["weight-decay=0.1"], "weight-decay-path"),
        (["scaler-sharing=none", "exchange=sharded"], "scaler-sharing = none"),
        (["global-batch=1"], "global-batch = 1"),
    ):
        with tempfile.NamedTemporaryFile("w", suffix=".job") as job:
            job.write("model = lenet\ncompute = replay\nsteps = 2\n")
            job.flush()
            settings = [text for key in keys for text in ("--set", key)]
            done = subprocess.run([os.environ["TGD_LAB_REFERENCE"], "--job", job.name, "--members", "2", *settings], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 2 and word in done.stderr and not done.stdout, (keys, done)


def test_one_node_is_shown_for_people():
    for threads in ("1", "2"):
        command = [sys.executable, HERE / "exchange", "--model", "lenet", "--nodes", "1", "--steps", "4", "--rate", "none", "--threads", threads]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"{PARAMETERS:,} elements of 1 nodes equal the plain reference" in done.stdout, done.stdout
        assert "sent " not in done.stdout, done.stdout


def test_recorded_gradients():
    with tempfile.TemporaryDirectory() as folder:
        pattern = os.path.join(folder, "lenet-{rank}.f32")
        record = [os.environ["TGD_LAB_RECORD"], "--members", "2", "--out", pattern, "model=lenet", "steps=5", "data-train=256", "data-test=64", "global-batch=16"]
        subprocess.run(record, check=True, stdin=subprocess.DEVNULL)
        result = exchange("--model", "lenet", "--nodes", "2", "--steps", "4", "--rate", "none", "--set", f"replay-gradients={pattern}")
        assert result["verified"] is True
        assert result["zeros"] > 0.75, f"{result['zeros']}: real gradients have more zeros than normal ones"


def test_a_wrong_model_is_not_verified():
    with tempfile.TemporaryDirectory() as folder:
        job, model = os.path.join(folder, "a.job"), os.path.join(folder, "model-raw.safetensors")
        pathlib.Path(job).write_text("model = lenet\ncompute = replay\nsteps = 2\n")
        header = json.dumps({"conv1.weight": {"dtype": "F32", "shape": [20, 1, 5, 5], "data_offsets": [0, 2000]}}).encode()
        pathlib.Path(model).write_bytes(len(header).to_bytes(8, "little") + header + bytes(2000))
        done = subprocess.run([os.environ["TGD_LAB_REFERENCE"], "--job", job, "--members", "2", model], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 1, done
        report = json.loads(done.stdout)
        assert report["verified"] is False and "conv1.weight: element 0 is 0" in report["difference"], report


if __name__ == "__main__":
    test_small_steps_are_shaped_finely()
    test_a_wrong_model_is_not_verified()
    test_options_unknown_to_the_reference_are_refused()
    test_floats_and_own_scalers()
    test_drawn_gradients()
    test_plain_tcp_is_beside_the_bound()
    test_one_node_is_shown_for_people()
    test_recorded_gradients()
