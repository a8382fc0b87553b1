"""The manifests under deploy/kubernetes, as kustomize makes them."""

import functools
import subprocess

import yaml

from server_process import ROOT

MANIFESTS = ROOT / "deploy" / "kubernetes"
KUSTOMIZE = str(ROOT / "build" / "gotools" / "kustomize")


@functools.cache
def _rendered(folder):
    done = subprocess.run([KUSTOMIZE, "build", str(MANIFESTS / folder)], capture_output=True,
                          check=False, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{folder}: {done.stderr}")
    return done.stdout


def render(folder):
    """Returns the objects of an overlay, by kind."""
    objects = list(yaml.safe_load_all(_rendered(folder)))
    kinds = [each["kind"] for each in objects]
    assert len(set(kinds)) == len(kinds), kinds
    return dict(zip(kinds, objects))
