//! Looks into a root for its manifest, and leaves what was made of it there.

use tenon_core::image::manifest::{self, Found, FoundFile};
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::site::{self, Site, matching};
use super::{facts, verify};
use crate::apply::directories::unreadable;
use crate::root::Root;
use crate::stop;

const TENON: &str = "/usr/bin/tenon";
/// Where packages and dkms put modules that are not the kernel's own.
const MODULES: &[&str] = &["extra", "updates", "updates/dkms"];

/// Gathers everything that the manifest tells and the plan does not.
pub fn gather(plan: &ImagePlan, root: &Root) -> Result<Found, Problem> {
    let facts = facts::gather(root)?;
    let checks = verify::verify(plan, root, None)?;
    let packages = facts.packages.clone();
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    let mut kernels = root.list("/lib/modules").map_err(|e| unreadable("/lib/modules", e))?;
    kernels.sort_unstable();
    Ok(Found {
        packages,
        modules: modules(root, &kernels)?,
        kernels,
        files: files(&site, plan)?,
        tenon_sha256: site.hash(TENON)?,
        checks,
    })
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

/// `nvidia` for `/lib/modules/6.1.0/updates/dkms/nvidia.ko.xz`
fn modules(root: &Root, kernels: &[String]) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    for kernel in kernels {
        for place in MODULES {
            let found = matching(root, &format!("/lib/modules/{kernel}/{place}/*"))?;
            let name =
                |path: &String| Some(path.rsplit('/').next()?.split_once(".ko")?.0.to_owned());
            names.extend(found.iter().filter_map(name));
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
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
