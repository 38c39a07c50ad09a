"""deploy/docker as files: what compose 1.29 takes, what each service has to have, and that tgd takes each node's environment.
Needs no engine; tests/compose/run is the real thing. Named by the environment: TGD."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-yaml, whichever Python this is
import yaml  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKER = ROOT / "deploy" / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
NODES = {name: service for name, service in SERVICES.items() if name.startswith("node-")}

# All that is wrong with the lab's file here: this is not node-c's machine.
OF_ANOTHER_MACHINE = "tgd: this node's peer line says 10.0.0.3, which is not an address of this machine (ip -brief address): correct it, unless it is forwarded here"

NOT_IN_1_29 = {"gpus", "start_interval", "required", "develop", "include", "attach", "annotations", "provider", "models", "create_host_path"}


def keys(value):
    """Every key below."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def without_settings(text):
    """${MESH_DATA:-./data} is ./data where it is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(text))


def mounts(service):
    """(source, target, mode) of each volume."""
    return [(without_settings(one).split(":") + ["rw"])[:3] for one in service.get("volumes", [])]


def check_config(environment):
    """tgd's complaints, with the folders and the key that a container would have mounted, and without those of names that
    containers alone can resolve."""
    with tempfile.TemporaryDirectory() as data:
        key = os.path.join(data, "cluster.key")
        subprocess.run([os.environ["TGCTL"], "keygen", key], check=True, capture_output=True, timeout=60)
        given = {name: without_settings(value) for name, value in environment.items()} | {"TGD_DATA_DIR": data, "TGD_KEY_FILE": key}
        done = subprocess.run([os.environ["TGD"], "--check-config"], env=given, capture_output=True, text=True, timeout=60)
        return [line for line in done.stderr.splitlines() if "does not resolve" not in line]


class Files(unittest.TestCase):
    def test_compose_1_29_knows_every_key(self):
        self.assertLessEqual(set(COMPOSE) - {"services", "volumes"}, {key for key in COMPOSE if key.startswith("x-")})
        self.assertEqual(NOT_IN_1_29 & set(keys(COMPOSE)), set())

    def test_every_service_is_confined(self):
        for name, service in SERVICES.items():
            with self.subTest(service=name):
                self.assertEqual(service.get("cap_drop"), ["ALL"])
                self.assertEqual(service.get("security_opt"), ["no-new-privileges:true"])
                self.assertIs(service.get("read_only"), True)
                self.assertNotIn("privileged", service)
                self.assertNotIn("user", service)  # the image's
                for port in service.get("ports", []):
                    self.assertTrue(without_settings(port).startswith("127.0.0.1:"), port)

    def test_every_node_has_a_state_of_its_own_and_may_write_nothing_else(self):
        self.assertEqual(sorted(NODES), ["node-a", "node-b", "node-c", "node-d"])
        for name, service in (*NODES.items(), ("lab", SERVICES["lab"]), ("gpu", SERVICES["gpu"])):
            with self.subTest(service=name):
                self.assertEqual([[source, target] for source, target, mode in mounts(service) if mode == "rw"], [[name, "/var/lib/tgd"]])
                self.assertGreater(int(service["stop_grace_period"].removesuffix("s")), 10)  # tgd's patience with itself
                self.assertNotIn("healthcheck", service)  # the image's
        for service in NODES.values():
            self.assertEqual(service["depends_on"], {"keys": {"condition": "service_completed_successfully"}})

    def test_what_is_mounted_is_there(self):
        for name, service in SERVICES.items():
            for source, target, _ in mounts(service):
                with self.subTest(service=name, target=target):
                    self.assertTrue((DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], source)
            if build := service.get("build"):
                context = DOCKER / build["context"]
                self.assertTrue((context / build.get("dockerfile", "Dockerfile")).is_file(), name)

    def test_every_setting_is_explained(self):
        used = set(re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text()))
        said = dict(re.findall(r"^#(\w+)=(.*)$", (DOCKER / ".env").read_text(), re.M))
        self.assertEqual(used, set(said))
        for name, default in re.findall(r"\$\{(\w+):-([^}]+)\}", (DOCKER / "compose.yaml").read_text()):
            self.assertEqual(said[name], default, name)

    def test_tgd_takes_each_nodes_environment(self):
        for name, service in NODES.items():
            with self.subTest(node=name):
                self.assertEqual(check_config(service["environment"]), [])
        self.assertIn("node-x has no peer line", check_config(NODES["node-a"]["environment"] | {"TGD_NODE": "node-x"})[0])

    def test_tgd_takes_the_labs_peers(self):
        settings = SERVICES["lab"]["environment"] | {"TGD_CONFIG": str(DOCKER / "lab" / "peers.conf"), "TGD_NODE": "node-c"}
        self.assertEqual(check_config(settings), [OF_ANOTHER_MACHINE])
        self.assertIn("node is not set", check_config(settings | {"TGD_NODE": ""})[0])

    def test_the_profile_gpu_reserves_devices_and_needs_one(self):
        service = SERVICES["gpu"]
        self.assertEqual(service["profiles"], ["gpu"])
        devices = service["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual(devices, [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}])  # what compose 1.29 takes, too
        self.assertEqual([name for name, one in SERVICES.items() if "deploy" in one], ["gpu"], "nobody else needs NVIDIA's runtime")
        settings = service["environment"] | {"TGD_CONFIG": str(DOCKER / "lab" / "peers.conf"), "TGD_NODE": "node-c"}
        self.assertEqual(settings["TGD_ENGINE"], "cuda")  # no GPU: it ends, and is not healthy on the processor
        self.assertEqual(check_config(settings), [OF_ANOTHER_MACHINE])
        self.assertIn("device", check_config(settings | {"TGD_DEVICE": "first"})[0])
        self.assertNotEqual(without_settings(service["image"]), without_settings(SERVICES["lab"]["image"]))
        base = (DOCKER / "cuda-base" / "Dockerfile").read_text()
        for package in ("cuda-nvcc-", "cuda-cudart-dev-", "libcublas-dev-", "libcudnn9-dev-cuda-"):
            self.assertIn(package, base)
        image = (DOCKER / "Dockerfile").read_text()
        self.assertIn('HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["tgctl", "status", "--check"]', image)
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=compute,utility", image)

    def test_a_fetch_into_another_users_folder_names_the_command(self):
        """The entrypoint with a tgctl that says what it was given, in a folder that its user may not write to, then may."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            out, program = pathlib.Path(folder, "out"), pathlib.Path(folder, "tgctl")
            out.mkdir()
            program.write_text('#!/bin/sh\necho "$# $*"\nexit 9\n')
            program.chmod(0o755)
            as_user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
            for name in ("tgctl", "tgctl-lab"):
                self.assertEqual(SERVICES[name]["working_dir"], "/out")
                words = [word.replace("$$", "$") for word in SERVICES[name]["entrypoint"]]
                for mode, arguments, told in ((0o555, ["fetch", "a b", "-o", "lenet"], True), (0o555, ["status"], False), (0o777, ["fetch", "a b"], False)):
                    with self.subTest(service=name, mode=oct(mode), arguments=arguments):
                        out.chmod(mode)
                        done = subprocess.run([*words, *arguments], cwd=out, env={"PATH": f"{folder}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=60, **as_user)
                        self.assertEqual((done.returncode, done.stdout), (9, f"{len(arguments)} {' '.join(arguments)}\n"), done.stderr)
                        self.assertEqual(f"belongs to user {os.getuid()}, and tgctl runs here as user {as_user.get('user', os.getuid())}" in done.stderr, told, done.stderr)
                        self.assertEqual("chmod a+w out" in done.stderr, told, done.stderr)

    def test_prometheus_asks_every_node(self):
        config = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
        port = NODES["node-a"]["environment"]["TGD_METRICS"].split(":")[1]
        self.assertEqual(config["scrape_configs"][0]["static_configs"][0]["targets"], [f"{name}:{port}" for name in sorted(NODES)])

    def test_grafana_shows_the_board_to_readers_only(self):
        grafana = SERVICES["grafana"]
        self.assertEqual(grafana["profiles"], SERVICES["prometheus"]["profiles"])
        self.assertRegex(grafana["image"], r"^grafana/grafana:\d+\.\d+\.\d+$")
        settings = grafana["environment"]
        self.assertEqual(settings["GF_AUTH_ANONYMOUS_ORG_ROLE"], "Viewer")
        self.assertEqual(settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"], "true")
        self.assertNotIn("GF_INSTALL_PLUGINS", settings)
        inside = {target: source for source, target, mode in mounts(grafana) if mode == "ro"}
        provisioning = "/etc/grafana/provisioning"

        def provisioned(kind, name):
            return yaml.safe_load((DOCKER / inside[f"{provisioning}/{kind}"] / name).read_text())

        source = provisioned("datasources", "prometheus.yml")["datasources"][0]
        self.assertEqual(source["url"], "http://prometheus:9090")
        prometheus = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
        self.assertEqual(source["jsonData"]["timeInterval"], prometheus["global"]["scrape_interval"])
        provider = provisioned("dashboards", "tgd.yml")["providers"][0]
        board = json.loads((DOCKER / inside[provider["options"]["path"] + "/tgd.json"]).read_text())
        self.assertIn(settings["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"], inside)
        chosen = {one["name"]: one["current"].get("value") for one in board["templating"]["list"]}
        self.assertEqual(chosen["datasource"], source["uid"])

    def test_the_image_is_built_from_the_whole_product_and_nothing_else(self):
        kept = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M))
        parts = re.findall(r"^add_subdirectory\((\w+)\)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        self.assertEqual(kept, {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "deploy", *parts})
        copied = set(re.findall(r"^COPY (?!--)(.*) \S+$", (DOCKER / "Dockerfile").read_text(), re.M))
        self.assertLessEqual(set(parts), copied)


if __name__ == "__main__":
    sys.exit(unittest.main())
