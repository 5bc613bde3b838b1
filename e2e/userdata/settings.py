"""Reads TOML with Python's own parser. Arguments: pairs of TOML and JSON files that must agree."""
import json
import sys
import tomllib

bad = 0
for toml, expected in zip(sys.argv[1::2], sys.argv[2::2]):
    with open(toml, "rb") as file:
        same = tomllib.load(file) == json.load(open(expected, encoding="utf-8"))
    bad += not same
    print(toml.rsplit("/", 1)[-1], "ok" if same else "differs")
sys.exit(bad)
