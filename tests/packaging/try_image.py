"""Runs the image of build/image as a container with no rights, over a read-only root, and calls it.

    ./dev image --try
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

IMAGE, STORE = sys.argv[1:3]  # a name; a folder of buildah's
NAME = "opmill-try"
PROBE_SECONDS = 60


def run(*command, check=True, **options):
    return subprocess.run([str(part) for part in command], check=check, text=True, **options)


def output(*command):
    return run(*command, stdout=subprocess.PIPE).stdout.strip()


def buildah(*arguments):
    return output("buildah", "--root", f"{STORE}/storage", "--runroot", f"{STORE}/run", *arguments)


def make_certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2",
        "-keyout", folder / "tls.key", "-out", folder / "tls.crt", stderr=subprocess.DEVNULL)
    (folder / "tls.key").chmod(0o644)


def container(root, config, folder):
    """Writes what the Kubernetes manifests ask for as a configuration of runc."""
    run("runc", "spec", cwd=folder)
    spec = json.loads((folder / "config.json").read_text())
    spec["root"] = {"path": root, "readonly": True}
    user = int(config["User"])
    assert user != 0
    nothing = {kind: [] for kind in spec["process"]["capabilities"]}
    spec["process"] |= {
        "terminal": False, "args": config["Entrypoint"], "noNewPrivileges": True, "rlimits": [],
        "user": {"uid": user, "gid": user}, "capabilities": nothing,
        "env": [*config["Env"], "OPMILL_TLS_CERT=/tls/tls.crt", "OPMILL_TLS_KEY=/tls/tls.key"]}
    spec["mounts"] = [each for each in spec["mounts"] if each["destination"] != "/sys/fs/cgroup"]
    for place, options in (("/var/cache/opmill", ["rbind", "rw"]), ("/tls", ["rbind", "ro"])):
        source = folder / pathlib.Path(place).name
        source.mkdir()
        source.chmod(0o777)
        spec["mounts"].append({"destination": place, "type": "bind", "source": str(source),
                               "options": options})
    (folder / "config.json").write_text(json.dumps(spec))


def inside(*command):
    return ["runc", "exec", NAME, *command]


def wait_until_healthy(command, server):
    started = time.monotonic()
    while run(*inside(*command), check=False, stderr=subprocess.DEVNULL).returncode != 0:
        assert server.poll() is None, "the server has ended"
        assert time.monotonic() - started < PROBE_SECONDS, "the health check does not pass"
        time.sleep(0.2)


def check(root, folder):
    config = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
    container(root, config, folder)
    make_certificate(folder / "tls")
    started = time.monotonic()
    log = (folder / "log").open("w+")
    with subprocess.Popen(["runc", "run", NAME], cwd=folder, stderr=log, stdin=subprocess.DEVNULL) as server:
        try:
            wait_until_healthy(config["Healthcheck"]["Test"][1:], server)
            print(f"healthy after {time.monotonic() - started:.1f} s, as user {config['User']}")
            call = ("opmill", "--server", "localhost:50051", "--tls_ca", "/tls/tls.crt")
            print(output(*inside(*call, "demo")).splitlines()[-1])
            print(f"answers with TLS after {time.monotonic() - started:.1f} s")
            refused = run(*inside("opmill", "health"), check=False, capture_output=True)
            assert refused.returncode != 0, "clear text is accepted"
            assert run(*inside("touch", "/etc/x"), check=False, capture_output=True).returncode != 0

            # It completes what it has when it is told to stop.
            with subprocess.Popen(inside(*call, "bench", "--operator", "reduce", "--function", "log_sum_exp",
                                         "--shape", "4096,1024", "--concurrency", "8", "--duration", "20s"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                time.sleep(3)
                run("runc", "kill", NAME, "TERM")
                assert server.wait(timeout=60) == 0
        except BaseException:
            print((folder / "log").read_text()[-2000:])
            raise
        finally:
            run("runc", "delete", "--force", NAME, check=False, stderr=subprocess.DEVNULL)
    log.seek(0)
    lines = [json.loads(line) for line in log if line.startswith("{")]
    for event in ("serving", "draining", "stopped"):
        found = [line for line in lines if line.get("event") == event]
        assert found, f"no {event} line in the log"
        print(json.dumps(found[0])[:300])
    (draining,) = (line for line in lines if line.get("event") == "draining")
    assert draining["executions"] > 0, "nothing was in progress"


def main():
    name = buildah("from", IMAGE)
    try:
        root = buildah("mount", name)
        with tempfile.TemporaryDirectory(prefix="opmill-image-") as folder:
            check(root, pathlib.Path(folder))
    finally:
        buildah("rm", name)
    print("all passed")


if __name__ == "__main__":
    main()
