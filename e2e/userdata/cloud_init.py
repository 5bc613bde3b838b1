"""Has Debian's cloud-init read user data: its processor for messages, its schema for configs.

Argument: a directory with NAME.bin (final bytes) and NAME.json (the parts we meant, in order).
Prints one line for each case and ends with the number of findings.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from cloudinit import helpers, user_data


def parts(blob):
    state = tempfile.mkdtemp()
    paths = helpers.Paths({"cloud_dir": state, "run_dir": state})
    message = user_data.UserDataProcessor(paths).process(blob)
    for part in message.walk():
        if part.get_content_maintype() != "multipart":
            yield part.get_content_type(), part.get_payload(decode=True).decode()


def schema(text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        command = [sys.executable, "-m", "cloudinit.cmd.main", "schema", "-c", file.name]
        done = subprocess.run(command, capture_output=True, text=True)
        return [] if done.returncode == 0 else [done.stdout + done.stderr]


def check(path):
    wanted = [tuple(pair) for pair in json.loads(path.with_suffix(".json").read_text())]
    found = list(parts(path.read_bytes()))
    findings = []
    if [kind for kind, _ in found] != [kind for kind, _ in wanted]:
        findings.append(f"types {[kind for kind, _ in found]} instead of {[kind for kind, _ in wanted]}")
    for (kind, body), (_, meant) in zip(found, wanted):
        if body.rstrip("\n") != meant.rstrip("\n"):
            findings.append(f"{kind}: the body differs")
        if kind == "text/cloud-config":
            findings += schema(body)
    return findings


total = 0
for case in sorted(pathlib.Path(sys.argv[1]).glob("*.bin")):
    found = check(case)
    total += len(found)
    print(case.stem, "ok" if not found else found)
sys.exit(min(total, 100))
