//! The manifest as a bill of materials, in SPDX 2.3 and CycloneDX 1.6. Both come from the
//! manifest alone, so the same manifest gives the same bytes.

use serde_json::{Value, json};

use crate::plan::digest::sha256;

/// One thing that the image holds.
struct Part {
    name: String,
    version: String,
    /// CycloneDX's word for what it is.
    class: &'static str,
    url: Option<String>,
    sha256: Option<String>,
    licence: Option<String>,
    purl: String,
}

fn parts(manifest: &Value) -> Vec<Part> {
    let list = |name: &str| manifest[name].as_array().into_iter().flatten();
    let packages = list("packages").map(|one| package(manifest, one));
    packages.chain(list("components").map(component)).chain(list("images").map(image)).collect()
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
        Some((epoch, rest)) => (format!("&epoch={}", escaped(epoch)), rest.to_owned()),
        None => (String::new(), version.clone()),
    };
    let purl = format!(
        "pkg:{kind}/{vendor}/{}@{}?arch={}&distro={vendor}-{}{epoch}",
        escaped(&name),
        escaped(&bare),
        escaped(&arch),
        escaped(&release)
    );
    Part { name, version, class: "library", url: None, sha256: None, licence: None, purl }
}

fn component(one: &Value) -> Part {
    let (name, version, url) = (text(one, "name"), text(one, "version"), text(one, "url"));
    let sum = text(one, "sha256");
    let purl = format!(
        "pkg:generic/{}@{}?checksum=sha256%3A{sum}&download_url={}",
        escaped(&name),
        escaped(&version),
        escaped(&url)
    );
    let licence = one["licence"].as_str().map(str::to_owned);
    Part { name, version, class: "application", url: Some(url), sha256: Some(sum), licence, purl }
}

fn image(one: &Value) -> Part {
    let (reference, digest) = (text(one, "ref"), text(one, "digest"));
    let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
    let purl = format!(
        "pkg:oci/{}@{}?repository_url={}",
        escaped(&name),
        escaped(&digest),
        escaped(&reference)
    );
    let sha256 = digest.strip_prefix("sha256:").map(str::to_owned);
    Part {
        name: reference,
        version: digest,
        class: "container",
        url: None,
        sha256,
        licence: None,
        purl,
    }
}

/// As package URLs write what is neither a letter nor a digit.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// SPDX 2.3.
pub fn spdx(manifest: &Value) -> Value {
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
    for (at, part) in parts(manifest).iter().enumerate() {
        let id = format!("SPDXRef-{at}");
        packages.push(spdx_package(&id, part));
        relationships.push(relation("SPDXRef-image", "CONTAINS", &id));
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
    let mut package = json!({
        "SPDXID": id,
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": part.url.as_deref().unwrap_or("NOASSERTION"),
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": part.licence.as_deref().unwrap_or("NOASSERTION"),
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
    package
}

/// CycloneDX 1.6.
pub fn cyclonedx(manifest: &Value) -> Value {
    let component = |part: Part| {
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
            component["licenses"] = json!([{"license": {"id": licence}}]);
        }
        component
    };
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
        "components": parts(manifest).into_iter().map(component).collect::<Vec<_>>(),
    })
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

    #[test]
    fn package_urls_are_escaped() {
        let urls: Vec<_> = parts(&sample()).into_iter().map(|part| part.purl).collect();
        let sum = "a".repeat(64);
        assert_eq!(
            urls,
            [
                "pkg:deb/debian/containerd@1%3A1.6.20%2Bds1-1?arch=amd64&distro=debian-bookworm"
                    .to_owned(),
                format!(
                    "pkg:generic/kubelet@1.34.2?checksum=sha256%3A{sum}&download_url=https%3A%2F%2Fdl.k8s.io%2Frelease%2Fv1.34.2%2Fbin%2Flinux%2Famd64%2Fkubelet"
                ),
                format!("pkg:oci/pause@sha256%3A{sum}?repository_url=registry.k8s.io%2Fpause"),
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
        let document = spdx(&sample());
        let packages = document["packages"].as_array().unwrap();
        let relations = document["relationships"].as_array().unwrap();
        assert_eq!((packages.len(), relations.len()), (4, 4));
        for package in packages {
            let to = |one: &&Value| one["relatedSpdxElement"] == package["SPDXID"];
            assert_eq!(relations.iter().filter(to).count(), 1);
        }
        assert_eq!(document["creationInfo"]["created"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn cyclonedx_has_hashes_and_a_steady_serial() {
        let document = cyclonedx(&sample());
        assert_eq!(document["components"].as_array().unwrap().len(), 3);
        assert_eq!(document["components"][1]["hashes"][0]["alg"], "SHA-256");
        assert_eq!(document["components"][1]["licenses"][0]["license"]["id"], "Apache-2.0");
        let serial = document["serialNumber"].as_str().unwrap();
        assert_eq!(
            (serial.len(), serial),
            (45, cyclonedx(&sample())["serialNumber"].as_str().unwrap())
        );
    }
}
