//! The manifest as a bill of materials, in SPDX 2.3 and CycloneDX 1.6. Both come from the
//! manifest and the list of Tenon's own crates, so the same manifest gives the same bytes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::hex::sha256;

/// Identifiers of the list of SPDX that a licence is made of here. One that has others is told as
/// its publisher writes it, and nothing is asserted.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "ISC",
    "LGPL-2.1-or-later",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// One thing that the image holds.
#[derive(Default)]
struct Part {
    name: String,
    version: String,
    /// CycloneDX's word for what it is.
    class: &'static str,
    url: Option<String>,
    sha256: Option<String>,
    licence: Option<String>,
    /// Who ships it.
    supplier: Option<String>,
    purl: String,
    /// Linked into Tenon, and in the image by way of it.
    linked: bool,
}

/// Everything once. `crates` has a line for each crate of Tenon: name, version, licence and
/// sha256, with tabs between them.
fn parts(manifest: &Value, crates: &str) -> Vec<Part> {
    let list = |name: &str| manifest[name].as_array().into_iter().flatten();
    let packages = list("packages").map(|one| package(manifest, one));
    // A component of the distribution is among the packages.
    let components = list("components").filter(|one| one["source"] != "distro").map(component);
    let parts = packages.chain(components).chain(list("images").map(image));
    let tenon = tenon(&manifest["tenon"]);
    let crates = if tenon.is_some() { crates } else { "" };
    let crates = crates.lines().filter_map(linked);
    let mut seen = BTreeSet::new();
    let all = parts.chain(crates).chain(tenon);
    all.filter(|part| seen.insert(part.purl.clone())).collect()
}

/// Tenon's own program, if the root has it.
fn tenon(tenon: &Value) -> Option<Part> {
    let (version, sum) = (text(tenon, "version"), tenon["sha256"].as_str()?.to_owned());
    let purl = format!("pkg:generic/tenon@{}?checksum=sha256:{sum}", escaped(&version, b""));
    let name = "tenon".to_owned();
    Some(Part { name, version, class: "application", sha256: Some(sum), purl, ..Part::default() })
}

fn linked(line: &str) -> Option<Part> {
    let mut words = line.split('\t').map(str::to_owned);
    let (name, version) = (words.next()?, words.next()?);
    let purl = format!("pkg:cargo/{}@{}", escaped(&name, b""), escaped(&version, b""));
    let mut rest = words.map(|word| Some(word).filter(|word| !word.is_empty()));
    let (licence, sha256) = (rest.next()?, rest.next()?);
    let class = "library";
    Some(Part { name, version, class, sha256, licence, purl, linked: true, ..Part::default() })
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn package(manifest: &Value, one: &Value) -> Part {
    let (name, version, arch) = (text(one, "name"), text(one, "version"), text(one, "arch"));
    let base = &manifest["base"];
    let (family, release) = (text(base, "family"), text(base, "release"));
    let (kind, vendor) = match family.as_str() {
        "al2023" => ("rpm", "amzn"),
        family => ("deb", family),
    };
    // An epoch is a qualifier of an rpm, and part of the version of a deb.
    let (epoch, bare) = match version.split_once(':').filter(|_| kind == "rpm") {
        Some(("0", rest)) => (String::new(), rest.to_owned()),
        Some((epoch, rest)) => (format!("&epoch={}", escaped(epoch, b"")), rest.to_owned()),
        None => (String::new(), version.clone()),
    };
    let purl = format!(
        "pkg:{kind}/{vendor}/{}@{}?arch={}&distro={vendor}-{}{epoch}",
        escaped(&name, b""),
        escaped(&bare, b":"),
        escaped(&arch, b""),
        escaped(&release, b"")
    );
    let supplier = one["origin"].as_str().map(str::to_owned);
    Part { name, version, class: "library", supplier, purl, ..Part::default() }
}

fn component(one: &Value) -> Part {
    let (name, version, url) = (text(one, "name"), text(one, "version"), text(one, "url"));
    let sum = text(one, "sha256");
    let purl = format!(
        "pkg:generic/{}@{}?checksum=sha256:{sum}&download_url={}",
        escaped(&name, b""),
        escaped(&version, b":"),
        escaped(&url, b":/")
    );
    let licence = one["licence"].as_str().map(str::to_owned);
    let (url, sha256) = (Some(url), Some(sum));
    Part { name, version, class: "application", url, sha256, licence, purl, ..Part::default() }
}

fn image(one: &Value) -> Part {
    let (reference, digest) = (text(one, "ref"), text(one, "digest"));
    let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
    let purl = format!(
        "pkg:oci/{}@{}?repository_url={}",
        escaped(&name, b""),
        escaped(&digest, b":"),
        escaped(&reference, b":/")
    );
    let sha256 = digest.strip_prefix("sha256:").map(str::to_owned);
    let (name, version) = (reference, digest);
    Part { name, version, class: "container", sha256, purl, ..Part::default() }
}

/// As package URLs write what is neither a letter nor a digit, nor allowed in this place.
fn escaped(text: &str, allowed: &[u8]) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b".-_~".contains(&byte);
        match plain || allowed.contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A licence as an expression of SPDX; None if it holds other words.
fn expression(licence: &str) -> Option<String> {
    let written = licence.replace('/', " OR ");
    let bare = written.replace(['(', ')'], "");
    let known = |one: &str| LICENCES.contains(&one.trim());
    let all = bare.split(" AND ").flat_map(|part| part.split(" OR "));
    all.into_iter().all(known).then_some(written)
}

/// SPDX 2.3.
pub fn spdx(manifest: &Value, crates: &str) -> Value {
    let name = text(manifest, "name");
    let mut packages = vec![json!({
        "SPDXID": "SPDXRef-image",
        "name": name,
        "versionInfo": manifest["kubernetes"],
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "primaryPackagePurpose": "OPERATING-SYSTEM",
    })];
    let mut relationships = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")];
    let parts = parts(manifest, crates);
    let id = |at: usize| format!("SPDXRef-{at}");
    let tenon = parts.len().checked_sub(1).map(id).unwrap_or_default();
    for (at, part) in parts.iter().enumerate() {
        packages.push(spdx_package(&id(at), part));
        relationships.push(match part.linked {
            true => relation(&tenon, "STATIC_LINK", &id(at)),
            false => relation("SPDXRef-image", "CONTAINS", &id(at)),
        });
    }
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": format!("https://tenon.dev/spdx/{}", sha256(manifest.to_string().as_bytes())),
        "creationInfo": {
            "created": manifest["built"]["date"],
            "creators": [format!("Tool: tenon-{}", text(&manifest["tenon"], "version"))],
        },
        "packages": packages,
        "relationships": relationships,
    })
}

fn relation(from: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to})
}

fn spdx_package(id: &str, part: &Part) -> Value {
    let declared = part.licence.as_deref().and_then(expression);
    let mut package = json!({
        "SPDXID": id,
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": part.url.as_deref().unwrap_or("NOASSERTION"),
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": declared.as_deref().unwrap_or("NOASSERTION"),
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": part.purl,
        }],
    });
    if let Some(sum) = &part.sha256 {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sum}]);
    }
    if let (Some(words), None) = (&part.licence, &declared) {
        package["licenseComments"] = json!(format!("the publisher calls it: {words}"));
    }
    if let Some(supplier) = &part.supplier {
        package["supplier"] = json!(format!("Organization: {supplier}"));
    }
    package
}

/// CycloneDX 1.6.
pub fn cyclonedx(manifest: &Value, crates: &str) -> Value {
    let parts = parts(manifest, crates);
    let of = |linked: bool| -> Vec<&str> {
        parts.iter().filter(|part| part.linked == linked).map(|part| part.purl.as_str()).collect()
    };
    let mut dependencies = vec![json!({"ref": "image", "dependsOn": of(false)})];
    if let Some(tenon) = parts.last().filter(|part| part.name == "tenon") {
        dependencies.push(json!({"ref": tenon.purl, "dependsOn": of(true)}));
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial(manifest),
        "version": 1,
        "metadata": {
            "timestamp": manifest["built"]["date"],
            "tools": {"components": [{
                "type": "application", "name": "tenon", "version": manifest["tenon"]["version"],
            }]},
            "component": {
                "type": "operating-system",
                "bom-ref": "image",
                "name": manifest["name"],
                "version": manifest["kubernetes"],
            },
        },
        "components": parts.iter().map(cyclonedx_component).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn cyclonedx_component(part: &Part) -> Value {
    let mut component = json!({
        "type": part.class,
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "purl": part.purl,
    });
    if let Some(sum) = &part.sha256 {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if let Some(licence) = &part.licence {
        component["licenses"] = match expression(licence) {
            Some(one) if LICENCES.contains(&one.as_str()) && !one.contains(' ') => {
                json!([{"license": {"id": one}}])
            }
            Some(several) => json!([{"expression": several}]),
            None => json!([{"license": {"name": licence}}]),
        };
    }
    if let Some(supplier) = &part.supplier {
        component["supplier"] = json!({"name": supplier});
    }
    component
}

/// A UUID made of the manifest's hash, with the bits of version 8.
fn serial(manifest: &Value) -> String {
    let hash = sha256(manifest.to_string().as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 15),
        part(15, 18),
        part(18, 30)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::manifest::tests::sample;

    const CRATES: &str = "clap\t4.5.0\tMIT OR Apache-2.0\tcccc\ntenon-core\t0.1.0\tApache-2.0\t\n";

    #[test]
    fn package_urls_are_escaped() {
        let urls: Vec<_> = parts(&sample(), CRATES).into_iter().map(|part| part.purl).collect();
        let (sum, own) = ("a".repeat(64), "b".repeat(64));
        assert_eq!(
            urls,
            [
                "pkg:deb/debian/containerd@1:1.6.20%2Bds1-1?arch=amd64&distro=debian-bookworm"
                    .to_owned(),
                format!(
                    "pkg:generic/kubelet@1.34.2?checksum=sha256:{sum}&download_url=https://dl.k8s.io/release/v1.34.2/bin/linux/amd64/kubelet"
                ),
                format!("pkg:oci/pause@sha256:{sum}?repository_url=registry.k8s.io/pause"),
                "pkg:cargo/clap@4.5.0".to_owned(),
                "pkg:cargo/tenon-core@0.1.0".to_owned(),
                format!("pkg:generic/tenon@0.1.0?checksum=sha256:{own}"),
            ]
        );
        let rpm = json!({"base": {"family": "al2023", "release": "2023"}});
        let one = json!({"name": "curl", "version": "2:8.5.0-1.amzn2023", "arch": "x86_64"});
        assert_eq!(
            package(&rpm, &one).purl,
            "pkg:rpm/amzn/curl@8.5.0-1.amzn2023?arch=x86_64&distro=amzn-2023&epoch=2"
        );
    }

    #[test]
    fn spdx_relates_every_package_once() {
        let document = spdx(&sample(), CRATES);
        let packages = document["packages"].as_array().unwrap();
        let relations = document["relationships"].as_array().unwrap();
        assert_eq!((packages.len(), relations.len()), (7, 7));
        for package in packages {
            let to = |one: &&Value| one["relatedSpdxElement"] == package["SPDXID"];
            assert_eq!(relations.iter().filter(to).count(), 1);
        }
        let linked = relations.iter().filter(|one| one["relationshipType"] == "STATIC_LINK");
        assert!(linked.map(|one| &one["spdxElementId"]).all(|id| *id == packages[6]["SPDXID"]));
        assert_eq!(packages[1]["supplier"], "Organization: Debian/bookworm");
        assert_eq!(document["creationInfo"]["created"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn cyclonedx_has_hashes_and_a_steady_serial() {
        let document = cyclonedx(&sample(), CRATES);
        assert_eq!(document["components"].as_array().unwrap().len(), 6);
        assert_eq!(document["components"][1]["hashes"][0]["alg"], "SHA-256");
        assert_eq!(document["components"][1]["licenses"][0]["license"]["id"], "Apache-2.0");
        assert_eq!(document["dependencies"][1]["dependsOn"].as_array().unwrap().len(), 2);
        let serial = document["serialNumber"].as_str().unwrap();
        assert_eq!(
            (serial.len(), serial),
            (45, cyclonedx(&sample(), CRATES)["serialNumber"].as_str().unwrap())
        );
    }

    #[test]
    fn a_root_without_tenon_has_none_of_its_crates() {
        let mut manifest = sample();
        manifest["tenon"]["sha256"] = Value::Null;
        assert_eq!(parts(&manifest, CRATES).len(), 3);
        assert_eq!(cyclonedx(&manifest, CRATES)["dependencies"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn licences_are_asserted_only_where_they_are_known() {
        for (words, told) in [
            ("MIT", Some("MIT")),
            ("MIT/Apache-2.0", Some("MIT OR Apache-2.0")),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some("(MIT OR Apache-2.0) AND Unicode-3.0")),
            (
                "Apache-2.0 WITH LLVM-exception OR MIT",
                Some("Apache-2.0 WITH LLVM-exception OR MIT"),
            ),
            ("NVIDIA", None),
            ("MIT AND NVIDIA", None),
        ] {
            assert_eq!(expression(words).as_deref(), told, "{words}");
        }
        let part = Part { licence: Some("NVIDIA".into()), ..Part::default() };
        assert_eq!(spdx_package("a", &part)["licenseDeclared"], "NOASSERTION");
        assert_eq!(cyclonedx_component(&part)["licenses"][0]["license"]["name"], "NVIDIA");
    }
}
