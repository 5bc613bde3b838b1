//! Programs inside the root reach neither the kernel nor the network of the machine that builds.

use std::process::Command as Program;
use std::time::Duration;

use super::*;
use crate::apply::discard::discard;
use crate::image::inside;

/// Runs a test again where the root has the programs of this machine, read-only.
fn with_programs(stage: &Stage, work: &str) -> std::process::Output {
    let own = std::env::current_exe().unwrap();
    let script = "root=$1 own=$2 test=$3\n\
        show() { mkdir -p \"$root$1\"; mount --bind \"$1\" \"$root$1\"; \
        mount -o remount,bind,ro \"$root$1\"; }\n\
        rm -r \"$root/bin\"\n\
        for place in /usr/bin /usr/lib64 /usr/lib/*-linux-gnu /usr/lib/apt /usr/share/dpkg; do \
        [ ! -d $place ] || show $place; done\n\
        mkdir -p \"$root/host\" \"$root/usr/sbin\"; mount --bind /usr/sbin \"$root/host\"; \
        mount -o remount,bind,ro \"$root/host\"\n\
        for path in /usr/sbin/*; do ln -s \"/host/${path##*/}\" \"$root$path\"; done\n\
        for name in bin sbin lib lib64; do [ ! -d /$name ] || ln -s usr/$name \"$root/$name\"; done\n\
        TENON_TEST_ROOT=\"$root\" exec \"$own\" --exact \"$test\" --nocapture";
    Program::new("unshare")
        .args(["--mount", "sh", "-euc", script, "x"])
        .arg(stage.path())
        .arg(own)
        .arg(format!("image::tests::isolated::{work}"))
        .output()
        .unwrap()
}

fn inside(root: &Root, script: &str) -> Result<String, Problem> {
    let argv = ["sh", "-c", script].map(str::to_owned);
    let output = inside::run(root, None, &argv, Duration::from_secs(20))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Every setting of the kernel that somebody could change. The last process id changes by itself.
fn settings() -> Vec<String> {
    let (mut found, mut todo) = (Vec::new(), vec![PathBuf::from("/proc/sys")]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if meta.is_dir() {
                todo.push(path);
            } else if meta.mode() & 0o200 != 0 && !path.ends_with("ns_last_pid") {
                let value = fs::read(&path).unwrap_or_default();
                found.push(format!("{} {}", path.display(), String::from_utf8_lossy(&value)));
            }
        }
    }
    found.sort_unstable();
    found
}

/// What a build must leave alone: settings, mounts, modules, rules.
fn machine() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let nft = Program::new("nft").args(["list", "ruleset"]).output();
    let rules = nft.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let names = |text: String| {
        let mut names: Vec<_> =
            text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        names.sort_unstable();
        names.join("\n")
    };
    vec![
        settings().join("\n"),
        read("/proc/self/mountinfo"),
        format!("{:?}", fs::metadata("/usr/lib").and_then(|meta| meta.modified()).ok()),
        names(read("/proc/modules")),
        rules.unwrap_or_default(),
    ]
}

#[test]
fn programs_inside_reach_nothing_outside() {
    if !is_root() {
        return;
    }
    let name = "programs_inside_reach_nothing_outside";
    let Some(root) = std::env::var_os("TENON_TEST_ROOT") else {
        let before = machine();
        let stage = Stage::new();
        let output = with_programs(&stage, name);
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        assert_eq!(machine(), before);
        return;
    };
    let root = Root::open(Path::new(&root)).unwrap();
    let before = machine();
    for (script, expected) in [
        ("echo 77 > /proc/sys/kernel/panic || echo refused", "refused"),
        ("echo 1 > /sys/kernel/profiling || echo refused", "refused"),
        ("cat /proc/net/dev | grep -c :", "1"),
        ("ls /proc | grep -c '^[0-9]*$' | xargs test 9 -gt && echo few", "few"),
        ("hostname other 2>/dev/null; echo done", "done"),
        ("mount -t tmpfs x /mnt 2>/dev/null; echo done", "done"),
        (
            "ls /dev | sort | tr '\\n' ' '",
            "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
        ),
        ("echo $SYSTEMD_OFFLINE$DEBIAN_FRONTEND", "1noninteractive"),
        ("echo x > /tmp/x; echo x > /run/x; ls /run/tenon", "cache"),
    ] {
        assert_eq!(inside(&root, script).unwrap(), expected, "{script}");
    }
    assert_eq!(machine(), before);
    assert!(root.list("/tmp").unwrap().is_empty() && root.list("/dev").unwrap().is_empty());
    let problem = inside(&root, "echo why >&2; exit 3").unwrap_err();
    assert_eq!((problem.exit(), problem.details.clone()), (6, vec!["why".to_owned()]));
    let problem = inside(&root, "echo No space left on device >&2; exit 1").unwrap_err();
    assert_eq!(problem.exit(), 7);
    let argv = ["sleep", "60"].map(str::to_owned);
    let late = inside::run(&root, None, &argv, Duration::from_millis(300)).unwrap_err();
    assert_eq!(late.exit(), 9);
    commands(&root);
}

fn run(words: &[&str]) {
    let output = Program::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A package whose scripts try what a build must not do, in a repository beside the root.
fn repository(place: &Path) {
    let at = |path: &str| place.join(path);
    let write = |path: &str, text: &str| {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
        fs::set_permissions(at(path), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let control = "Package: hello-node\nVersion: 1.2-3\nArchitecture: all\n\
        Maintainer: x <x@example.com>\nDescription: test\n";
    write("deb/DEBIAN/control", control);
    write(
        "deb/DEBIAN/postinst",
        "#!/bin/sh\necho 77 > /proc/sys/kernel/panic || echo kept >> /var/log/hello\n\
         /usr/sbin/policy-rc.d hello start; echo policy $? >> /var/log/hello\n",
    );
    write("deb/opt/hello/file", "hello");
    fs::create_dir(at("repo")).unwrap();
    let (tree, package) = (at("deb"), at("repo/hello.deb"));
    run(&["dpkg-deb", "--build", tree.to_str().unwrap(), package.to_str().unwrap()]);
    let body = fs::read(&package).unwrap();
    let entry = format!("Filename: ./hello.deb\nSize: {}\nSHA256: {}\n", body.len(), sha256(&body));
    fs::write(at("repo/Packages"), format!("{control}{entry}")).unwrap();
    let source = format!("deb [trusted=yes] copy:{} ./\n", at("repo").display());
    write("root/etc/apt/sources.list", &source);
}

#[test]
fn packages_come_from_the_cache_and_start_nothing() {
    let name = "packages_come_from_the_cache_and_start_nothing";
    let has = |program: &str| Path::new(program).exists();
    if !is_root() || !has("/usr/bin/apt-get") || !has("/usr/bin/dpkg-deb") {
        return;
    }
    let Some(path) = std::env::var_os("TENON_TEST_ROOT").map(PathBuf::from) else {
        let stage = Stage::new();
        repository(stage.place.path());
        for place in ["info", "updates", "triggers"] {
            fs::create_dir_all(stage.at("var/lib/dpkg").join(place)).unwrap();
        }
        for place in ["var/log/apt", "var/lib/apt", "var/cache/apt"] {
            fs::create_dir_all(stage.at(place)).unwrap();
        }
        stage.write("opt/old/file", b"old");
        stage.write("var/lib/dpkg/info/oldie.list", b"/.\n/opt\n/opt/old\n/opt/old/file\n");
        stage.write(
            "var/lib/dpkg/status",
            b"Package: oldie\nStatus: install ok installed\nMaintainer: x <x@example.com>\n\
              Architecture: all\nVersion: 1\nDescription: old\n",
        );
        let output = with_programs(&stage, name);
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    };
    let root = Root::open(&path).unwrap();
    let plan = plan(
        "about = 'x'\n[[package]]\nname = 'hello-node'\nversion = '1.2'\nlock = true\nreason = 'r'\n\
         [[package-absent]]\nname = 'oldie'\nreason = 'r'\n",
    );
    let cache = Cache::open(&path.with_file_name("cache")).unwrap();
    let apply = || {
        let options =
            Options { cache: Some(&cache), live: false, files_only: false, probe: &|_| Ok(()) };
        apply::apply(&plan, &root, options)
    };
    let problem = apply().unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (10, "TN10817"), "{problem:?}");
    let fetched = crate::image::fetch::fetch(&plan, Some(&root), &cache).unwrap();
    assert_eq!(fetched.packages, ["hello-node"]);
    let before = machine();
    let policy = "/usr/sbin/policy-rc.d";
    // The machine may have one of its own, to which a link leads.
    discard(&root, policy).unwrap();
    fs::write(root.join(policy), "exit 0\n").unwrap();
    assert_eq!(apply().unwrap().changed, ["packages", "package hello-node"]);
    assert_eq!(machine(), before);
    assert_eq!(root.read_text("/opt/hello/file").unwrap().unwrap(), "hello");
    assert_eq!(root.read_text("/var/log/hello").unwrap().unwrap(), "kept\npolicy 101");
    assert!(!root.exists("/opt/old/file"));
    assert_eq!(root.read_text(policy).unwrap().unwrap(), "exit 0", "somebody else's is back");
    let status = root.read_text("/var/lib/dpkg/status").unwrap().unwrap();
    assert!(status.contains("Status: hold ok installed"), "{status}");
    assert_eq!(apply().unwrap().changed, Vec::<String>::new());
    // As a killed dpkg leaves it: unpacked, its script not yet run.
    let torn = status.replace("hold ok installed", "install ok unpacked");
    fs::write(root.join("/var/lib/dpkg/status"), format!("{torn}\n")).unwrap();
    assert_eq!(apply().unwrap().changed, ["packages", "package hello-node"]);
}

/// A command runs once, again when an input changed, and its outputs are held to what they were.
fn commands(root: &Root) {
    let profile = "about = 'x'\n[[command]]\nname = 'count'\nwords = ['sh', '-c', 'cat /etc/in >> /etc/out']\n\
        inputs = ['/etc/in']\noutputs = ['/etc/out']\nwhy = 'w'\nreason = 'r'\n";
    let plan = plan(profile);
    let at = |path: &str| root.join(path);
    fs::write(at("/etc/in"), "a").unwrap();
    let apply = || {
        let options = Options { cache: None, live: false, files_only: false, probe: &|_| Ok(()) };
        apply::apply(&plan, root, options).unwrap().changed
    };
    assert_eq!(apply(), ["command count"]);
    assert_eq!(apply(), Vec::<String>::new());
    fs::write(at("/etc/in"), "b").unwrap();
    assert_eq!(apply(), ["command count"]);
    assert_eq!(fs::read_to_string(at("/etc/out")).unwrap(), "ab");
}

/// `--root /`, as on a build instance.
#[test]
fn the_machine_itself_can_be_the_root() {
    if !is_root() {
        return;
    }
    let (root, before) = (Root::open(Path::new("/")).unwrap(), machine());
    let script = "echo 77 > /proc/sys/kernel/panic || echo refused; grep -c : /proc/net/dev";
    assert_eq!(inside(&root, script).unwrap(), "refused\n1");
    assert_eq!(machine(), before);
}

#[test]
fn a_link_in_the_place_of_a_mount_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    fs::remove_dir(stage.at("proc")).unwrap();
    std::os::unix::fs::symlink("/etc", stage.at("proc")).unwrap();
    let problem = inside(&stage.root(), "true").unwrap_err();
    assert_eq!(problem.page.code, "TN06815");
}
