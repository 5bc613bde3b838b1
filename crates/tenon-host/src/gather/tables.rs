//! Instance tables that an image carries, for types newer than this binary.

use tenon_core::codes::max_pods::BAD_INSTANCE_TABLE;
use tenon_core::facts::InstanceLimits;
use tenon_core::max_pods::Table;
use tenon_core::problem::{Place, Problem};

use crate::root::Root;

const DIRECTORY: &str = "/etc/tenon/instances.d";

/// Largest file that is read: ten times the embedded table.
const CAP: u64 = 1 << 20;

/// A table as text, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    pub path: String,
    pub text: String,
}

impl TableFile {
    /// The checked table; a bad line is named by its place.
    pub fn table(&self) -> Result<Table<'_>, Problem> {
        Table::parse(&self.text).map_err(|error| {
            let place = Place {
                source: format!("file://{}", self.path),
                line: u32::try_from(error.line).unwrap_or(u32::MAX),
                column: 1,
                ..Place::default()
            };
            Problem::new(&BAD_INSTANCE_TABLE, "a line of an instance table is no row")
                .at(place)
                .cause(error.message)
        })
    }
}

/// Reads the tables of the machine, in the order of their names; usually there are none.
pub fn read(root: &Root) -> Result<Vec<TableFile>, Problem> {
    let names = root.list(DIRECTORY).map_err(|error| unreadable(DIRECTORY).cause(error))?;
    let mut files = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(".tsv")) {
        let path = format!("{DIRECTORY}/{name}");
        let bytes = root.read(&path, CAP).map_err(|error| unreadable(&path).cause(error))?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|_| unreadable(&path).cause("the file is not UTF-8"))?;
        files.push(TableFile { path, text });
    }
    Ok(files)
}

/// The problem with a table that cannot be read.
pub fn unreadable(path: &str) -> Problem {
    Problem::new(&BAD_INSTANCE_TABLE, format!("reading the instance table {path}"))
}

/// Limits of a type that the embedded table does not know.
pub fn limits(root: &Root, instance_type: &str) -> Result<Option<InstanceLimits>, Problem> {
    for file in read(root)? {
        if let Some(row) = file.table()?.find(instance_type) {
            return Ok(Some(InstanceLimits {
                default_enis: row.enis,
                ipv4_per_eni: row.ipv4_per_eni,
                vcpu: row.vcpu,
            }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "x9.large\t3\t10\t10\t2\t4096\tx\tn\t1\t3\t0\t-\t-\t-\n";

    fn root_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let tables = directory.path().join("etc/tenon/instances.d");
        std::fs::create_dir_all(&tables).unwrap();
        for (name, text) in files {
            std::fs::write(tables.join(name), text).unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        (directory, root)
    }

    #[test]
    fn a_table_of_the_image_knows_newer_types() {
        let (_directory, root) = root_with(&[("a.tsv", ROW), ("notes.txt", "no table")]);
        let expected = InstanceLimits { default_enis: 3, ipv4_per_eni: 10, vcpu: 2 };
        assert_eq!(limits(&root, "x9.large").unwrap(), Some(expected));
        assert_eq!(limits(&root, "x9.xlarge").unwrap(), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        let (_directory, root) = root_with(&[("a.tsv", "# head\nx9.large\t3\n")]);
        let problem = limits(&root, "x9.large").unwrap_err();
        let place = problem.place.as_ref().unwrap();
        assert_eq!((place.line, problem.exit()), (2, 3));
        assert!(place.source.ends_with("/etc/tenon/instances.d/a.tsv"));
    }

    #[test]
    fn no_directory_is_no_table() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(directory.path()).unwrap();
        assert_eq!(read(&root).unwrap(), []);
    }
}
