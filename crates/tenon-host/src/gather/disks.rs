//! Instance store disks and md arrays, by stable names, with what is on them.

use std::collections::BTreeMap;
use std::io;

use rustix::fs::{Mode, OFlags};
use tenon_core::facts::{Array, Disk};
use tenon_core::problem::Problem;

use super::files;
use super::machine::Mount;
use super::signature::{self, Signature};
use crate::root::Root;

const BY_ID: &str = "/dev/disk/by-id";
/// Part of the stable name of every instance store disk.
const INSTANCE_STORE: &str = "NVMe_Instance_Storage_";

/// The instance store disks, sorted by serial.
pub fn instance_store(root: &Root, mounts: &[Mount]) -> Result<Vec<Disk>, Problem> {
    let mut disks = BTreeMap::new();
    for link in files::names(root, BY_ID)? {
        let partition = link.contains("-part");
        if !link.contains(INSTANCE_STORE) || partition {
            continue;
        }
        let Some(name) = root.link_name(&format!("{BY_ID}/{link}")) else { continue };
        // Each disk has several links: with and without its namespace.
        if !disks.contains_key(&name) {
            disks.insert(name.clone(), disk(root, &name, &link, mounts)?);
        }
    }
    let mut disks: Vec<Disk> = disks.into_values().collect();
    disks.sort_by(|a, b| (&a.serial, &a.device).cmp(&(&b.serial, &b.device)));
    Ok(disks)
}

/// The assembled arrays, sorted by kernel name.
pub fn arrays(root: &Root, mounts: &[Mount]) -> Result<Vec<Array>, Problem> {
    let mut arrays = Vec::new();
    for name in files::numbered(root, "/sys/block", "md")? {
        let level = files::small(root, &format!("/sys/block/{name}/md/level"))?;
        let Some(level) = level else { continue };
        let members = files::names(root, &format!("/sys/block/{name}/slaves"))?;
        let found = look(root, &name)?;
        arrays.push(Array {
            name: array_name(root, &members)?.unwrap_or_default(),
            level,
            members: members.iter().map(|member| device(member)).collect(),
            signature: found.kind.map(str::to_owned),
            uuid: found.uuid,
            mounted_at: mounted_at(root, mounts, &name),
            device: device(&name),
        });
    }
    Ok(arrays)
}

fn disk(root: &Root, name: &str, link: &str, mounts: &[Mount]) -> Result<Disk, Problem> {
    let serial = files::small(root, &format!("/sys/block/{name}/device/serial"))?;
    let found = look(root, name)?;
    Ok(Disk {
        device: device(name),
        serial: serial.filter(|text| !text.is_empty()).unwrap_or_else(|| serial_of(link)),
        size_bytes: size(root, name)?,
        signature: found.kind.map(str::to_owned),
        uuid: found.uuid,
        mounted_at: mounted_at(root, mounts, name),
    })
}

/// The serial inside a stable name: `AWS123` of `nvme-…_Instance_Storage_AWS123-ns-1`.
fn serial_of(link: &str) -> String {
    let behind = link.rsplit(INSTANCE_STORE).next().unwrap_or(link);
    let end = behind.find("-ns-").unwrap_or(behind.len());
    // Without `-ns-` newer udev writes the namespace as `_1`.
    behind[..end].split('_').next().unwrap_or(behind).to_owned()
}

fn device(name: &str) -> String {
    format!("/dev/{name}")
}

/// Size in bytes; the kernel counts sectors of 512 whatever the disk's own are.
fn size(root: &Root, name: &str) -> Result<u64, Problem> {
    let sectors = files::small(root, &format!("/sys/block/{name}/size"))?;
    Ok(sectors.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default().saturating_mul(512))
}

/// The name in the metadata of an array's first member.
fn array_name(root: &Root, members: &[String]) -> Result<Option<String>, Problem> {
    match members.first() {
        Some(member) => Ok(look(root, member)?.array_name),
        None => Ok(None),
    }
}

/// What is on a block device.
fn look(root: &Root, name: &str) -> Result<Signature, Problem> {
    let path = device(name);
    let detect = || -> io::Result<Signature> {
        let fd = root.open_at(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        let size = rustix::fs::seek(&fd, rustix::fs::SeekFrom::End(0))?;
        signature::detect(size, |offset, length| {
            let mut bytes = vec![0; length];
            let count = rustix::io::pread(&fd, &mut bytes, offset)?;
            bytes.truncate(count);
            Ok(bytes)
        })
    };
    detect().map_err(|error| files::unreadable(&path, error))
}

/// Where a device is mounted, whatever name the mount was made by.
fn mounted_at(root: &Root, mounts: &[Mount], name: &str) -> Option<String> {
    let own = device(name);
    let found = mounts.iter().find(|mount| {
        let linked = mount.source.starts_with("/dev/md/") || mount.source.starts_with("/dev/disk/");
        mount.source == own
            || (linked && root.link_name(&mount.source).is_some_and(|to| to == name))
    });
    found.map(|mount| mount.target.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn write(dir: &Path, path: &str, bytes: &[u8]) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// A disk as a file, with its links and its entries in /sys.
    fn add_disk(dir: &Path, name: &str, serial: &str, content: &[u8]) {
        let mut bytes = content.to_vec();
        bytes.resize(1 << 18, 0);
        write(dir, &format!("dev/{name}"), &bytes);
        write(dir, &format!("sys/block/{name}/size"), b"512\n");
        write(dir, &format!("sys/block/{name}/device/serial"), format!("{serial}\n").as_bytes());
        let by_id = dir.join("dev/disk/by-id");
        fs::create_dir_all(&by_id).unwrap();
        for suffix in ["", "-ns-1", "_1"] {
            let link = format!("nvme-Amazon_EC2_NVMe_Instance_Storage_{serial}{suffix}");
            symlink(format!("../../{name}"), by_id.join(link)).unwrap();
        }
    }

    fn bench() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        add_disk(dir.path(), "nvme2n1", "AWS111", b"");
        add_disk(dir.path(), "nvme1n1", "AWS222", b"XFSB");
        let root_volume = "nvme-Amazon_Elastic_Block_Store_vol0123";
        symlink("../../nvme0n1", dir.path().join("dev/disk/by-id").join(root_volume)).unwrap();
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn disks_are_unique_sorted_by_serial_and_never_the_root_volume() {
        let (_dir, root) = bench();
        let mounts =
            [Mount { source: "/dev/nvme1n1".into(), target: "/mnt/a".into(), kind: "xfs".into() }];
        let disks = instance_store(&root, &mounts).unwrap();
        let shown: Vec<_> = disks.iter().map(|d| (d.device.as_str(), d.serial.as_str())).collect();
        assert_eq!(shown, [("/dev/nvme2n1", "AWS111"), ("/dev/nvme1n1", "AWS222")]);
        assert_eq!(disks[0].signature, None);
        assert_eq!(disks[0].size_bytes, 1 << 18);
        assert_eq!(disks[1].signature.as_deref(), Some("xfs"));
        assert_eq!(disks[1].mounted_at.as_deref(), Some("/mnt/a"));
    }

    #[test]
    fn a_machine_without_instance_store_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(instance_store(&root, &[]).unwrap(), []);
        assert_eq!(arrays(&root, &[]).unwrap(), []);
    }

    #[test]
    fn serials_are_found_in_every_form_of_link() {
        for suffix in ["", "-ns-1", "_1"] {
            let link = format!("nvme-Amazon_EC2_NVMe_Instance_Storage_AWS22{suffix}");
            assert_eq!(serial_of(&link), "AWS22", "{link}");
        }
    }

    #[test]
    fn an_array_is_known_by_the_name_in_its_metadata() {
        let (dir, root) = bench();
        let mut member = vec![0; 0x2000];
        member[0x1000..0x1004].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
        member[0x1020..0x1032].copy_from_slice(b"old-host:kubernete");
        member[0x1032] = b's';
        write(dir.path(), "dev/nvme2n1", &member);
        write(dir.path(), "dev/md127", b"XFSB");
        write(dir.path(), "sys/block/md127/md/level", b"raid0\n");
        write(dir.path(), "sys/block/md127/slaves/nvme2n1/x", b"");
        write(dir.path(), "sys/block/mdless/md/level", b"raid0\n");
        fs::create_dir_all(dir.path().join("dev/md")).unwrap();
        symlink("../md127", dir.path().join("dev/md/kubernetes_0")).unwrap();
        let source = "/dev/md/kubernetes_0".to_owned();
        let mounts = [Mount { source, target: "/mnt/k8s-disks/0".into(), kind: "xfs".into() }];
        let found = arrays(&root, &mounts).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].device.as_str(), found[0].name.as_str()),
            ("/dev/md127", "kubernetes")
        );
        assert_eq!(found[0].level, "raid0");
        assert_eq!(found[0].members, ["/dev/nvme2n1"]);
        assert_eq!(found[0].signature.as_deref(), Some("xfs"));
        assert_eq!(found[0].mounted_at.as_deref(), Some("/mnt/k8s-disks/0"));
    }
}
