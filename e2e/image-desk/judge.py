"""Templates and bills of materials before readers that are not ours.

judge.py DIRECTORY, with CASE.pkr.hcl and CASE.packer.json, CASE.spdx.json, CASE.cdx.json.
Prints what it finds; ends with 1 if it finds something.
"""

import json
import pathlib
import re
import sys

import hcl2
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from spdx_tools.spdx.parser.error import SPDXParsingError
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def plain(value):
    """A value of python-hcl2 without its quotes and marks; one block in a list is the block."""
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items() if k != "__is_block__"}
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict) and value[0].get("__is_block__"):
            return plain(value[0])
        return [plain(one) for one in value]
    if isinstance(value, str) and value.startswith('"'):
        return json.loads(value).replace("$${", "${").replace("%%{", "%{")
    return value


def in_hcl_words(value):
    """A value of the legacy template as the HCL template says it."""
    if isinstance(value, dict):
        return {k: in_hcl_words(v) for k, v in value.items()}
    if isinstance(value, list):
        one = value[0] if len(value) == 1 else None
        return in_hcl_words(one) if isinstance(one, dict) else [in_hcl_words(v) for v in value]
    if isinstance(value, str):
        value = re.sub(r"{{build `(\w+)`}}", r"${build.\1}", value)
        return re.sub(r"{{user `(\w+)`}}", r"${var.\1}", value)
    return value


def labelled(blocks):
    """Blocks with one label as pairs of label and content."""
    return [pair for block in blocks for pair in plain(block).items()]


def template(hcl_text, legacy):
    found = hcl2.loads(hcl_text)
    variables = dict(labelled(found["variable"]))
    legacy_builder = dict(legacy["builders"][0])
    kind = legacy_builder.pop("type")
    build = found["build"][0]
    provisioners = [(one.pop("type"), in_hcl_words(one)) for one in legacy["provisioners"]]
    after = [(one.pop("type"), one) for one in legacy["post-processors"]]
    as_text = {name: json.dumps(one["default"]).strip('"') for name, one in variables.items()}
    kinds = {"string": str, "number": int, "bool": bool}
    pairs = [
        ("variables", as_text, legacy["variables"]),
        ("builder", dict(labelled(found["source"]))[kind]["node"], in_hcl_words(legacy_builder)),
        ("provisioners", labelled(build["provisioner"]), provisioners),
        ("post-processors", labelled(build["post-processor"]), after),
        ("plugins", sorted(plain(found["packer"])["required_plugins"]), ["amazon"]),
    ]
    for name, one in variables.items():
        pairs.append((name, type(one["default"]), kinds[one["type"]]))
    return [f"{what}: HCL says {one}, JSON {other}" for what, one, other in pairs if one != other]


def spdx(path):
    try:
        document = parse_file(str(path))
    except SPDXParsingError as error:
        return [str(message) for message in error.get_messages()]
    found = [message.validation_message for message in validate_full_spdx_document(document)]
    packages = json.loads(path.read_text())["packages"]
    locators = [ref["referenceLocator"] for one in packages for ref in one.get("externalRefs", [])]
    return found + package_urls(locators)


def cyclonedx(text):
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        return [str(error)[:2000]]
    document = json.loads(text)
    Bom.from_json(document).validate()
    refs = {one["bom-ref"] for one in document["components"]} | {"image"}
    used = {ref for one in document["dependencies"] for ref in [one["ref"], *one["dependsOn"]]}
    found = [f"{ref} is no component" for ref in sorted(used - refs)]
    return found + package_urls([one["purl"] for one in document["components"]])


def package_urls(urls):
    """Each is written as the specification's own canonical form."""
    canonical = [(url, PackageURL.from_string(url).to_string()) for url in urls]
    return [f"{url} is canonically {right}" for url, right in canonical if url != right]


def teeth(directory):
    """The readers refuse what is wrong; else their silence would mean nothing."""
    bill = json.loads(next(directory.glob("*.cdx.json")).read_text())
    bill["components"][0]["licenses"] = [{"license": {"id": "No-Such-Licence"}}]
    document = json.loads(next(directory.glob("*.spdx.json")).read_text())
    document["packages"][1]["licenseDeclared"] = "No-Such-Licence"
    wrong = directory / "teeth.json"
    wrong.write_text(json.dumps(document))
    other = json.loads(next(directory.glob("*.packer.json")).read_text())
    other["builders"][0]["metadata_options"]["http_tokens"] = "optional"
    hcl = next(directory.glob("*.pkr.hcl")).read_text()
    refused = {
        "CycloneDX": cyclonedx(json.dumps(bill)),
        "SPDX": [m.validation_message for m in validate_full_spdx_document(parse_file(str(wrong)))],
        "HCL": template(hcl, other),
    }
    return [f"{name}: something wrong is accepted" for name, told in refused.items() if not told]


def main(directory):
    findings = []
    for path in sorted(directory.iterdir()):
        case, _, kind = path.name.partition(".")
        if kind == "pkr.hcl":
            legacy = json.loads((directory / f"{case}.packer.json").read_text())
            told = template(path.read_text(), legacy)
        elif kind == "spdx.json":
            told = spdx(path)
        elif kind == "cdx.json":
            told = cyclonedx(path.read_text())
        else:
            continue
        findings += [f"{path.name}: {one}" for one in told]
    return findings + teeth(directory)


found = main(pathlib.Path(sys.argv[1]))
print("\n".join(found))
sys.exit(1 if found else 0)
