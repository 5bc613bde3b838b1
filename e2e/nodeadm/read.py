#!/usr/bin/python3
"""Tells what a program changed on this machine, by meaning, with parsers of neither program.

    read.py note FILE    before it ran: notes every file and directory
    read.py tell FILE    after it ran: prints as JSON what is new or changed
    read.py passed ...   prints its arguments and environment, as systemd passed them
    read.py runs         prints what the daemons run with
"""
import json
import os
import re
import stat
import subprocess
import sys
import time
import tomllib
import urllib.request

import yaml

# Not the programs' doing: state of the kernel, of systemd, of cloud-init and of the daemons.
SKIPPED = re.compile(
    r"/(proc|sys|dev|tmp|usr|boot|opt/containerd|etc/systemd/logind.conf.d"
    r"|run/(log|dbus|udev|user|credentials|lock|cloud-init|containerd|netns|lab-.*)"
    r"|run/systemd/(?!network|resolved\.conf\.d|system(/|$)).*"
    r"|var/(log|tmp|cache|lib/(systemd|containerd|dbus|apt|dpkg|cni|kubelet/(?!.*kubeconfig$).*)))$"
)
ENVIRONMENT = "/etc/eks/kubelet/environment"


def entries(directory="/"):
    """Every path below, without following links."""
    with os.scandir(directory) as found:
        for entry in sorted(found, key=lambda entry: entry.name):
            if SKIPPED.fullmatch(entry.path):
                continue
            yield entry.path, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from entries(entry.path)


def traits(state):
    """What changes when somebody writes. A directory changes with each of its files."""
    common = [state.st_mode, state.st_uid, state.st_gid]
    if stat.S_ISDIR(state.st_mode):
        return common
    return common + [state.st_size, state.st_mtime_ns, state.st_ino]


def tell(before):
    after = {path: state for path, state in entries() if traits(state) != before.get(path)}
    told = {path: shown(path, state) for path, state in after.items()}
    for path in before:
        if not os.path.lexists(path):
            told[path] = {"type": "removed"}
    dump = subprocess.run(["containerd", "config", "dump"], capture_output=True, check=True)
    told["containerd config dump"] = {"value": tomllib.loads(dump.stdout.decode())}
    return told


def shown(path, state):
    common = {"mode": f"{stat.S_IMODE(state.st_mode):04o}", "owner": f"{state.st_uid}:{state.st_gid}"}
    if stat.S_ISDIR(state.st_mode):
        return {"type": "directory", **common}
    if stat.S_ISLNK(state.st_mode):
        return {"type": "link", "value": os.readlink(path)}
    return {"type": "file", **common, "value": meaning(path)}


def meaning(path):
    if path == ENVIRONMENT:
        return passed_by_systemd()
    if path.startswith("/var/lib/tenon/generations/"):
        return "what was here before"
    with open(path, "rb") as file:
        text = file.read().decode()
    if path.endswith(".json") or "/config.json.d/" in path:
        return json.loads(text)
    if path.endswith(".toml"):
        return tomllib.loads(text)
    if path.endswith("kubeconfig"):
        return yaml.safe_load(text)
    return text.splitlines()


def passed_by_systemd():
    """Starts a service that reads the kubelet's environment file as the kubelet's unit does."""
    command = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect"]
    command += ["--property", f"EnvironmentFile={ENVIRONMENT}"]
    command += [sys.executable, os.path.abspath(__file__), "passed", "$NODEADM_KUBELET_ARGS"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def passed(arguments, environment):
    """Flags by name, each with its values in their order, and the variables of the file."""
    flags = {}
    for argument in arguments:
        name, _, value = argument.partition("=") if argument.startswith("-") else ("(words)", "", argument)
        flags.setdefault(name, []).append(value)
    with open(ENVIRONMENT) as file:
        names = set(re.findall(r"^(\w+)=", file.read(), re.MULTILINE))
    # The arguments again, as one text, in which the order of different flags is of no meaning.
    names.discard("NODEADM_KUBELET_ARGS")
    return {"flags": flags, "variables": {name: environment.get(name) for name in names}}


def runs():
    """What the kubelet was started with, and the state of both daemons once it is healthy."""
    wait_until_healthy()
    states = {unit: state(unit) for unit in ["containerd", "kubelet"]}
    process = f"/proc/{states['kubelet'].pop('MainPID')}"
    states["containerd"].pop("MainPID")
    words = [open(f"{process}/{name}").read().split("\0")[:-1] for name in ("cmdline", "environ")]
    environment = dict(pair.split("=", 1) for pair in words[1])
    return {"daemons": {"value": {**passed(words[0][1:], environment), **states}}}


def state(unit):
    show = ["systemctl", "show", "--property", "ActiveState,NRestarts,MainPID", unit]
    lines = subprocess.run(show, capture_output=True, check=True, text=True).stdout
    return dict(line.split("=", 1) for line in lines.splitlines())


def wait_until_healthy():
    """nodeadm does not wait for what it starts."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen("http://127.0.0.1:10248/healthz", timeout=5).read()
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"the kubelet is not healthy after 60 s: {error}")
            time.sleep(0.1)


def main():
    match sys.argv[1:]:
        case ["note", file]:
            noted = {path: traits(state) for path, state in entries()}
            with open(file, "w") as out:
                json.dump(noted, out)
            print("{}")
        case ["tell", file]:
            with open(file) as noted:
                print(json.dumps(tell(json.load(noted))))
        case ["passed", *arguments]:
            print(json.dumps(passed(arguments, dict(os.environ))))
        case ["runs"]:
            print(json.dumps(runs()))
        case _:
            sys.exit(__doc__)


main()
