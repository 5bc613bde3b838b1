//! Container images that an image of a node carries. containerd does not run while an image is
//! built, and its store is its own business: so the archive lies in the root, and a unit of one
//! command after another imports it at the first boot, before the kubelet asks for it.

use super::item::Act;
use crate::config::PAUSE_IMAGE;
use crate::plan::baked::PAUSE_ARCHIVE;

/// Where the archives lie in the root.
pub const PLACE: &str = "/var/lib/tenon/images";
/// What containerd's garbage collection of the kubelet goes by.
const PINNED: &str = "io.cri-containerd.pinned=pinned";

/// The digits of a digest, if it is one.
pub fn digits(digest: &str) -> Option<&str> {
    let digits = digest.strip_prefix("sha256:")?;
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (digits.len() == 64 && digits.bytes().all(is_hex)).then_some(digits)
}

/// The archive of an image, in the root.
pub fn archive(digest: &str) -> String {
    format!("{PLACE}/{}.tar", digits(digest).unwrap_or("unpinned"))
}

/// The unit that imports an image, by name and content, and the link that starts it.
pub(super) fn unit(reference: &str, digest: &str, pin: bool, names: &[String]) -> Vec<Act> {
    let short = digits(digest).map_or("unpinned", |digits| &digits[..12]);
    let (name, archive) = (format!("tenon-image-{short}.service"), archive(digest));
    let done = format!("{PLACE}/{short}.imported");
    let full = format!("{reference}@{digest}");
    let ctr = "ExecStart=/usr/bin/ctr --namespace k8s.io images";
    let mut starts = vec![format!("{ctr} import --base-name {reference} --digests {archive}")];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    starts.extend(names.iter().map(|name| format!("{ctr} tag --force {full} {name}")));
    if pin {
        let all = [&names[..], &[full.as_str()]].concat();
        starts.extend(all.iter().map(|name| format!("{ctr} label {name} {PINNED}")));
    }
    let content = format!(
        "[Unit]\nDescription=Import {reference} into containerd\nAfter=containerd.service\n\
         Requires=containerd.service\nBefore=kubelet.service\nConditionPathExists=!{done}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=120\n{}\n\
         ExecStartPost=/usr/bin/touch {done}\n\n[Install]\nWantedBy=multi-user.target\n",
        starts.join("\n")
    );
    let path = format!("/etc/systemd/system/{name}");
    let link = format!("/etc/systemd/system/multi-user.target.wants/{name}");
    let owner = "root:root".to_owned();
    let mut acts = vec![
        Act::File { path: path.clone(), content, mode: 0o644, owner, if_absent: false },
        Act::Link { path: link, target: path },
    ];
    if names.contains(&PAUSE_IMAGE) {
        // From there bootstrap imports it once more where another snapshotter is in use.
        acts.push(Act::Link { path: PAUSE_ARCHIVE.to_owned(), target: archive });
    }
    acts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_imported_under_all_its_names_and_pinned() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let names = [PAUSE_IMAGE.to_owned()];
        let acts = unit("registry.k8s.io/pause", &digest, true, &names);
        let Act::File { content, path, .. } = &acts[0] else { panic!("{acts:?}") };
        assert_eq!(path, "/etc/systemd/system/tenon-image-abababababab.service");
        assert_eq!(content.matches("ExecStart=").count(), 4);
        assert!(content.contains("import --base-name registry.k8s.io/pause --digests /var/lib"));
        assert!(
            content.contains(&format!("tag --force registry.k8s.io/pause@{digest} localhost/"))
        );
        let Act::Link { path, target } = &acts[2] else { panic!("{acts:?}") };
        assert_eq!((path.as_str(), target), (PAUSE_ARCHIVE, &archive(&digest)));
        assert_eq!(digits("sha256:xyz"), None);
    }
}
