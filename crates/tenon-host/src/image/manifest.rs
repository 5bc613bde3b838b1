//! Looks into a root for its manifest, and leaves what was made of it there.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tenon_core::image::family::Manager;
use tenon_core::image::manifest::{self, Found, FoundFile};
use tenon_core::image::origin::{self, Origins, RPM_VENDORS};
use tenon_core::image::packages::{DPKG_STATUS, Installed};
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::cache::Cache;
use super::facts::QUERY_TIME;
use super::site::{self, Site, matching};
use super::{facts, inside, verify};
use crate::apply::directories::unreadable;
use crate::root::{Root, read_up_to};
use crate::stop;

const TENON: &str = "/usr/bin/tenon";
/// Where packages and dkms put modules that are not the kernel's own.
const MODULES: &[&str] = &["extra/*", "extra/*/*", "updates/*", "updates/*/*"];
/// Drivers with their firmware are the largest modules.
const MODULE_CAP: u64 = 256 << 20;
/// The index of all of Debian has 50 MB.
const INDEX_CAP: u64 = 512 << 20;

/// Gathers everything that the manifest tells and the plan does not. Origins of packages are
/// told by the lists of apt in the root and in the cache.
pub fn gather(plan: &ImagePlan, root: &Root, cache: Option<&Cache>) -> Result<Found, Problem> {
    let facts = facts::gather(root)?;
    let checks = verify::verify(plan, root, None)?;
    let (packages, manager) = (facts.packages.clone(), facts.family.manager);
    let release = facts.release.clone();
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    let mut kernels = root.list("/lib/modules").map_err(|e| unreadable("/lib/modules", e))?;
    kernels.sort_unstable();
    let link = root.link_name("/vmlinuz").or_else(|| root.link_name("/boot/vmlinuz"));
    let grubenv = text(root, "/boot/grub2/grubenv")?;
    let kernel = origin::kernel(link.as_deref(), &grubenv, &kernels);
    Ok(Found {
        release,
        origins: origins(&site, manager, &packages, cache)?,
        snapshot: snapshot(root, manager, &packages)?,
        packages,
        modules: modules(root, &kernels)?,
        kernel,
        kernels,
        files: files(&site, plan)?,
        tenon_sha256: site.hash(TENON)?,
        checks,
    })
}

fn text(root: &Root, path: &str) -> Result<String, Problem> {
    let text = root.read_text(path).map_err(|error| unreadable(path, error))?;
    Ok(text.unwrap_or_default())
}

fn origins(
    site: &Site<'_>,
    manager: Manager,
    installed: &Installed,
    cache: Option<&Cache>,
) -> Result<Origins, Problem> {
    if manager == Manager::Dnf {
        if !site.root.exists("/usr/bin/rpm") {
            return Ok(Origins::new());
        }
        let query: Vec<String> = RPM_VENDORS.iter().map(|word| (*word).to_owned()).collect();
        let answer = inside::run(site.root, None, &query, QUERY_TIME)?;
        return Ok(origin::vendors(&String::from_utf8_lossy(&answer.stdout)));
    }
    let mut origins = listed(site.root, "/var/lib/apt/lists", installed)?;
    if let Some(place) = cache.map(Cache::directory) {
        let root = Root::open(place).map_err(|e| unreadable(&place.display().to_string(), e))?;
        origins.extend(listed(&root, "/apt/lists", installed)?);
    }
    // What a package says of itself comes first.
    origins.extend(origin::declared(&site.text(DPKG_STATUS)?));
    origins.retain(|name, _| installed.contains_key(name));
    Ok(origins)
}

/// What the repositories of a directory of lists offer. Packed lists are left out.
fn listed(root: &Root, directory: &str, installed: &Installed) -> Result<Origins, Problem> {
    let mut origins = Origins::new();
    let read = |name: &str| {
        let bytes = root.read(&format!("{directory}/{name}"), INDEX_CAP).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    for name in root.list(directory).map_err(|error| unreadable(directory, error))? {
        stop::check()?;
        // SERVER_dists_bookworm_main_binary-amd64_Packages and SERVER_dists_bookworm_InRelease
        let Some(stem) = name.strip_suffix("_Packages") else { continue };
        let parts: Vec<&str> = stem.split('_').collect();
        let releases = (1..parts.len()).rev().flat_map(|count| {
            let start = parts[..count].join("_");
            ["InRelease", "Release"].map(|end| format!("{start}_{end}"))
        });
        let release = releases.into_iter().find_map(|name| read(&name));
        let Some(repository) = release.as_deref().and_then(origin::repository) else { continue };
        let index = read(&name).unwrap_or_default();
        let offered = origin::offered(&index, installed).into_iter();
        origins.extend(offered.map(|name| (name.to_owned(), repository.clone())));
    }
    Ok(origins)
}

fn snapshot(
    root: &Root,
    manager: Manager,
    installed: &Installed,
) -> Result<Option<String>, Problem> {
    if manager == Manager::Dnf {
        let told = text(root, "/etc/dnf/vars/releasever")?;
        return Ok(origin::dnf_snapshot(Some(&told), installed));
    }
    let mut sources = text(root, "/etc/apt/sources.list")?;
    for pattern in ["/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"] {
        for path in matching(root, pattern)? {
            sources.push('\n');
            sources.push_str(&text(root, &path)?);
        }
    }
    Ok(origin::apt_snapshot(&sources))
}

fn files(site: &Site<'_>, plan: &ImagePlan) -> Result<Vec<FoundFile>, Problem> {
    let mut files = Vec::new();
    for path in manifest::paths(plan) {
        stop::check()?;
        if let (site::Found::File(dress), Some(sha256)) = (site.found(&path)?, site.hash(&path)?) {
            files.push(FoundFile { path, sha256, mode: dress.mode });
        }
    }
    Ok(files)
}

/// Names and versions of modules: as dkms keeps them, or as they say themselves.
fn modules(root: &Root, kernels: &[String]) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let mut built = BTreeMap::new();
    for path in matching(root, "/var/lib/dkms/*/*/*/*/module/*")? {
        let parts: Vec<&str> = path.split('/').collect();
        if let (Some(name), Some(version)) = (module_name(&path), parts.get(5)) {
            built.insert(name.to_owned(), (*version).to_owned());
        }
    }
    let mut modules = BTreeMap::new();
    for kernel in kernels {
        for place in MODULES {
            for path in matching(root, &format!("/lib/modules/{kernel}/{place}"))? {
                let Some(name) = module_name(&path) else { continue };
                let version = built.get(name).cloned().or_else(|| own_version(root, &path));
                modules.insert(name.to_owned(), version);
            }
        }
    }
    Ok(modules)
}

/// `nvidia` for `/lib/modules/6.1.0/updates/dkms/nvidia.ko.xz`
fn module_name(path: &str) -> Option<&str> {
    let (name, packing) = path.rsplit('/').next()?.split_once(".ko")?;
    ["", ".gz", ".xz", ".zst"].contains(&packing).then_some(name)
}

/// The version that the file of a module names; one packed by xz cannot be asked.
fn own_version(root: &Root, path: &str) -> Option<String> {
    let packed = root.read(path, MODULE_CAP).ok()??;
    let module = match path.rsplit('.').next()? {
        "ko" => packed,
        "gz" => read_up_to(GzDecoder::new(packed.as_slice()), MODULE_CAP).ok()?,
        "zst" => {
            let mut module = Vec::new();
            let decoder = StreamingDecoder::new(packed.as_slice()).ok()?;
            decoder.take(MODULE_CAP).read_to_end(&mut module).ok()?;
            module
        }
        _ => return None,
    };
    origin::module_version(&module)
}

/// Writes documents into the root, each whole or not at all.
pub fn leave(plan: &ImagePlan, root: &Root, files: &[(&str, String)]) -> Result<(), Problem> {
    let facts = facts::gather(root)?;
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    for (path, text) in files {
        site.place(path, &mut text.as_bytes(), 0o644, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use tenon_core::image::packages::Package;

    use super::*;

    fn put(place: &Path, path: &str, bytes: &[u8]) {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn modules_are_asked_however_they_are_packed() {
        let place = tempfile::tempdir().unwrap();
        let module = |version: &str| format!("\0license=GPL\0version={version}\0").into_bytes();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&module("2.0")).unwrap();
        let zst = ruzstd::encoding::compress_to_vec(
            module("3.0").as_slice(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (path, bytes) in [
            ("extra/plain.ko", module("1.0")),
            ("extra/drivers/gz.ko.gz", packer.finish().unwrap()),
            ("updates/zst.ko.zst", zst),
            ("updates/dkms/neuron.ko.xz", b"packed".to_vec()),
            ("extra/silent.ko.xz", b"packed".to_vec()),
            ("extra/README", Vec::new()),
            ("kernel/own.ko", module("9")),
        ] {
            put(place.path(), &format!("lib/modules/6.1/{path}"), &bytes);
        }
        put(place.path(), "var/lib/dkms/aws-neuron/2.21/6.1/x86_64/module/neuron.ko.xz", b"");
        let root = Root::open(place.path()).unwrap();
        let found = modules(&root, &["6.1".to_owned()]).unwrap();
        let version = |text: &str| Some(text.to_owned());
        let expected = [
            ("gz", version("2.0")),
            ("neuron", version("2.21")),
            ("plain", version("1.0")),
            ("silent", None),
            ("zst", version("3.0")),
        ];
        assert_eq!(found, expected.map(|(name, version)| (name.to_owned(), version)).into());
    }

    #[test]
    fn lists_of_apt_tell_where_packages_came_from() {
        let place = tempfile::tempdir().unwrap();
        let start = "deb.debian.org_debian_dists_bookworm";
        let release = b"-----BEGIN PGP SIGNED MESSAGE-----\n\nOrigin: Debian\nCodename: bookworm\n";
        put(place.path(), &format!("{start}_InRelease"), release);
        let index = b"Package: runc\nVersion: 1.1.5\n\nPackage: bash\nVersion: 5\n";
        put(place.path(), &format!("{start}_main_binary-amd64_Packages"), index);
        put(place.path(), "nowhere_main_binary-amd64_Packages", index);
        let package = |version: &str| Package { version: version.into(), ..Package::default() };
        let installed: Installed =
            [("runc".to_owned(), package("1.1.5")), ("bash".to_owned(), package("6"))].into();
        let root = Root::open(place.path()).unwrap();
        let found = listed(&root, "/", &installed).unwrap();
        assert_eq!(found, [("runc".to_owned(), "Debian/bookworm".to_owned())].into());
    }
}
