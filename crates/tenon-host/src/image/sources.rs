//! Where packages come from while they are fetched: the root's own sources and those of the plan,
//! as copies beside the cache. The root must not change yet, and its keys lie elsewhere as this
//! machine sees them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenon_core::image::family::Manager;
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::cache::Cache;
use crate::apply::directories::unreadable;
use crate::apply::files::write_problem;
use crate::root::Root;

/// What stands before the path of a key in the sources of apt.
const KEY_WORDS: &[&str] = &["signed-by=", "Signed-By: "];

/// Copies all sources and gives their directory. `real` is the root without links in its path.
pub fn copy(plan: &ImagePlan, root: &Root, real: &Path, cache: &Cache) -> Result<PathBuf, Problem> {
    let place = cache.directory().join("sources");
    let told = |error| write_problem("writing", &place.display().to_string(), error);
    emptied(&place).map_err(told)?;
    for (name, text) in of_root(plan.family.manager, root, real)? {
        fs::write(place.join(name), text).map_err(told)?;
    }
    for one in plan.resources.iter().filter(|one| one.kind.name == "repository") {
        let key = match one.text("key") {
            Some(text) => {
                let path = place.join("keys").join(format!("{}.asc", one.key));
                fs::write(&path, text).map_err(told)?;
                path
            }
            None => below(real, &plan.family.key_path(&one.key)),
        };
        let (path, text) = plan.family.source(one, &key.display().to_string());
        let name = path.rsplit('/').next().unwrap_or(&path);
        fs::write(place.join(name), text).map_err(told)?;
    }
    Ok(place)
}

fn emptied(place: &Path) -> io::Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place.join("keys"))
}

/// Name and text of every source of the root.
fn of_root(manager: Manager, root: &Root, real: &Path) -> Result<Vec<(String, String)>, Problem> {
    let (directory, ends): (&str, &[&str]) = match manager {
        Manager::Apt => ("/etc/apt/sources.list.d", &[".list", ".sources"]),
        Manager::Dnf => ("/etc/yum.repos.d", &[".repo"]),
    };
    let names = root.list(directory).map_err(|error| unreadable(directory, error))?;
    let mut paths: Vec<String> = names
        .into_iter()
        .filter(|name| ends.iter().any(|end| name.ends_with(end)))
        .map(|name| format!("{directory}/{name}"))
        .collect();
    if manager == Manager::Apt {
        paths.push("/etc/apt/sources.list".to_owned());
    }
    let mut sources = Vec::new();
    for path in paths {
        let text = root.read_text(&path).map_err(|error| unreadable(&path, error))?;
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        sources.extend(text.map(|text| (name, with_keys_of(root, real, &text) + "\n")));
    }
    Ok(sources)
}

/// The text with the paths of keys as this machine sees them, where the root has them.
fn with_keys_of(root: &Root, real: &Path, text: &str) -> String {
    let line = |line: &str| {
        let found = KEY_WORDS.iter().find_map(|word| Some(line.find(word)? + word.len()));
        let Some((head, rest)) = found.map(|at| line.split_at(at)) else { return line.to_owned() };
        let end = rest.find([' ', ']', ',']).unwrap_or(rest.len());
        match rest.starts_with('/') && root.exists(&rest[..end]) {
            true => format!("{head}{}{}", below(real, &rest[..end]).display(), &rest[end..]),
            false => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn below(real: &Path, path: &str) -> PathBuf {
    real.join(path.trim_start_matches('/'))
}
