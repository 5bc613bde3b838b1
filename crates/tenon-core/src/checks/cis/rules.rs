//! How an item is judged.

use std::collections::BTreeSet;

use serde_json::json;

use super::items::{Ask, Item, Role, Rule, Seat};
use super::settings::{self, mended};
use crate::checks::kubelet::{self, Effective};
use crate::checks::mend::Mend;
use crate::checks::snapshot::{Look, Snapshot, Stat};
use crate::checks::{Family, Finding, State, shown, shown_text, unit_file, veiled};
use crate::hex::sha256;
use crate::plan::diff::parents;
use crate::plan::kubeconfig;
use crate::plan::kubelet::{CA_PATH, CONFIG_PATH, ENVIRONMENT_PATH};
use crate::userdata::secrets::secret_shape;

/// Where a kube-proxy that is not a pod keeps its kubeconfig.
const PROXY_KUBECONFIGS: [&str; 2] =
    ["/var/lib/kube-proxy/kubeconfig", "/etc/kubernetes/kube-proxy.conf"];
const USER_DATA: &str = "/var/lib/cloud/instance/user-data.txt";
const UNIT_DIRECTORY: &str = "/etc/systemd/system";

/// A snapshot with the kubelet read from it.
pub(super) struct Bench<'a> {
    snapshot: &'a Snapshot,
    /// The kubelet as its files make it, and as it runs if that differs.
    kubelets: Result<(Effective, Option<Effective>), String>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let from_files = kubelet::arguments(snapshot);
        let running = snapshot.process("kubelet");
        let of = |arguments: Vec<String>, source| Effective::of(snapshot, arguments, source);
        let kubelets = match (from_files, running) {
            (Ok((arguments, source)), Some(process)) if arguments != process.arguments => {
                let source_now = format!("process {}", process.pid);
                Ok((of(arguments, source), Some(of(process.arguments.clone(), source_now))))
            }
            (Ok((arguments, source)), _) => Ok((of(arguments, source), None)),
            (Err(_), Some(process)) => {
                Ok((of(process.arguments.clone(), format!("process {}", process.pid)), None))
            }
            (Err(why), None) => Err(why),
        };
        Bench { snapshot, kubelets }
    }

    /// Judges one item; the worst answer counts where files and process differ.
    pub(super) fn judge(&self, prefix: &str, item: &Item) -> Finding {
        let blank = Finding::new(Family::Cis, format!("{prefix}-{}", item.id), item.title)
            .severity(item.severity);
        match item.rule {
            Rule::Mode(role, mode) => self.mode(blank, role, mode),
            Rule::Owner(role) => self.owner(blank, role),
            Rule::AddressFilter => self.address_filter(blank),
            Rule::ProxyMetrics => self.proxy_metrics(blank),
            Rule::UserData => self.user_data(blank),
            Rule::OwnUnits => self.own_units(blank),
            Rule::Parents => self.parents(blank),
            Rule::Restart => self.restart(blank),
            Rule::Elsewhere(Seat::Image, why) => blank.not_applicable(why),
            Rule::Elsewhere(Seat::Person, remedy) => {
                let why = "the instance's own settings, which the node cannot see";
                blank.state(State::Manual).at("EC2").values("required, 1", why).remedy(remedy)
            }
            Rule::Kubelet(ask) => match &self.kubelets {
                Err(why) => blank.unknown(why.as_str()),
                Ok((kubelet, running)) => {
                    let by_files = self.of(kubelet, &blank, ask);
                    match running.as_ref().map(|running| self.of(running, &blank, ask)) {
                        Some(now) if now.state < by_files.state => worse_now(now, by_files),
                        _ => by_files,
                    }
                }
            },
        }
    }

    /// Judges what the kubelet is told.
    fn of(&self, kubelet: &Effective, blank: &Finding, ask: Ask) -> Finding {
        let blank = blank.clone();
        match ask {
            Ask::Value(field, want) => settings::value(kubelet, blank, field, want),
            Ask::ServingRotation => settings::serving_rotation(kubelet, blank),
            Ask::ServingCertificate => settings::serving_certificate(kubelet, blank),
            Ask::Ciphers => settings::ciphers(kubelet, blank),
            Ask::ClientCa => self.client_ca(kubelet, blank),
            Ask::HostnameOverride => self.hostname_override(kubelet, blank),
        }
    }

    /// The files of a role; an error says why they are not known.
    fn files(&self, role: Role) -> Result<Vec<String>, String> {
        let kubelet = || match &self.kubelets {
            Ok((kubelet, _)) => Ok(kubelet),
            Err(why) => Err(why.clone()),
        };
        Ok(match role {
            Role::Kubeconfig => {
                vec![kubelet()?.flag("kubeconfig").unwrap_or_else(|| kubeconfig::PATH.to_owned())]
            }
            Role::Config => {
                let kubelet = kubelet()?;
                let config = kubelet.config.clone().into_iter();
                config.chain(kubelet.drop_ins(self.snapshot)).collect()
            }
            Role::Service => match unit_file::hidden(self.snapshot, kubelet::UNIT) {
                Some(why) => return Err(why),
                None => unit_file::files(self.snapshot, kubelet::UNIT),
            },
            Role::ProxyKubeconfig => PROXY_KUBECONFIGS.map(str::to_owned).to_vec(),
            Role::ClientCa => {
                let setting = kubelet()?.get("authentication.x509.clientCAFile")?;
                setting.value.as_str().map(str::to_owned).into_iter().collect()
            }
        })
    }

    /// The files of a role that are there, with their modes; or the finding that says why not.
    fn stats(&self, blank: &Finding, role: Role) -> Result<Vec<(String, Stat)>, Box<Finding>> {
        let files = self.files(role).map_err(|why| Box::new(blank.clone().unknown(why)))?;
        let mut stats = Vec::new();
        for path in files {
            let hidden = |why: &str| Box::new(blank.clone().at(shown_text(&path)).unknown(why));
            match self.snapshot.look(&path) {
                Look::Absent => {}
                Look::Hidden(why) => return Err(hidden(&why)),
                Look::There(seen) => {
                    let stat = seen.stat.ok_or_else(|| hidden("a bundle does not keep modes"))?;
                    stats.push((path, stat));
                }
            }
        }
        match stats.is_empty() {
            true => Err(Box::new(blank.clone().not_applicable("there is no such file here"))),
            false => Ok(stats),
        }
    }

    fn mode(&self, blank: Finding, role: Role, widest: u32) -> Finding {
        let stats = match self.stats(&blank, role) {
            Ok(stats) => stats,
            Err(finding) => return *finding,
        };
        let expected = format!("no wider than {widest:04o}");
        let wide = stats.iter().find(|(_, stat)| stat.mode & 0o7777 & !widest != 0);
        let (path, stat) = wide.unwrap_or(&stats[0]);
        let finding = blank.at(shown_text(path)).values(expected, format!("{:04o}", stat.mode));
        match wide {
            None => finding,
            Some(_) => {
                let mode = stat.mode & widest;
                finding
                    .state(State::Fail)
                    .remedy(format!("chmod {mode:04o} {path}"))
                    .mend(Mend::Mode { paths: too_wide(&stats, widest), widest })
            }
        }
    }

    fn owner(&self, blank: Finding, role: Role) -> Finding {
        let stats = match self.stats(&blank, role) {
            Ok(stats) => stats,
            Err(finding) => return *finding,
        };
        let foreign: Vec<&(String, Stat)> =
            stats.iter().filter(|(_, stat)| (stat.uid, stat.gid) != (0, 0)).collect();
        let (path, stat) = foreign.first().copied().unwrap_or(&stats[0]);
        let actual = format!("{}:{}", stat.uid, stat.gid);
        let finding = blank.at(shown_text(path)).values("0:0 (root:root)", actual);
        match foreign.is_empty() {
            true => finding,
            false => finding.state(State::Fail).remedy(format!("chown root:root {path}")).mend(
                Mend::Owner { paths: foreign.iter().map(|(path, _)| path.clone()).collect() },
            ),
        }
    }

    fn client_ca(&self, kubelet: &Effective, blank: Finding) -> Finding {
        const FIELD: &str = "authentication.x509.clientCAFile";
        let blank = blank.at(FIELD);
        let setting = match kubelet.get(FIELD) {
            Ok(setting) => setting,
            Err(why) => return blank.unknown(why),
        };
        let Some(path) = setting.value.as_str() else {
            let finding = blank.values("a file with the cluster's CA", "not set");
            return mended(finding.state(State::Fail), &setting, FIELD, json!(CA_PATH));
        };
        let finding = blank
            .values("a file with the cluster's CA", shown(&setting.value))
            .origin(&setting.origin);
        let remedy = "run `tenon init`, which writes the CA of the config";
        match self.snapshot.text(path) {
            Err(why) => finding.unknown(why),
            Ok(Some(text)) if text.contains("-----BEGIN CERTIFICATE-----") => finding,
            Ok(Some(_)) => {
                let actual = format!("{} holds no certificate", shown_text(path));
                finding.state(State::Fail).actual(actual).remedy(remedy)
            }
            Ok(None) => finding
                .state(State::Fail)
                .actual(format!("{} does not exist", shown_text(path)))
                .remedy(remedy),
        }
    }

    fn hostname_override(&self, kubelet: &Effective, blank: Finding) -> Finding {
        let blank = blank.at("--hostname-override");
        let Some(name) = kubelet.flag("hostname-override") else {
            return blank.values("absent", "absent");
        };
        let finding = blank
            .values("absent", veiled(name.as_bytes()))
            .origin(format!("flag --hostname-override, {}", kubelet.source));
        match self.is_ours(ENVIRONMENT_PATH) {
            None => finding.unknown("the copy of the flags is redacted; who set it cannot be told"),
            Some(true) => finding.excused(
                "EKS knows a node by its private DNS name, which need not be the host name; \
                 Tenon's own flag says it",
            ),
            Some(false) => finding
                .state(State::Fail)
                .remedy("remove the flag, or let `tenon init` write it and its reason"),
        }
    }

    /// True for a file that is as Tenon wrote it; None for a copy without its secrets, which
    /// has another hash in any case.
    fn is_ours(&self, path: &str) -> Option<bool> {
        let mark = self.snapshot.record.as_ref().and_then(|record| record.files.get(path));
        match (self.snapshot.look(path), mark) {
            (Look::There(seen), _) if is_redacted(&seen.body) => None,
            (Look::There(seen), Some(mark)) => Some(sha256(&seen.body) == mark.sha256),
            _ => Some(false),
        }
    }

    fn address_filter(&self, blank: Finding) -> Finding {
        let files = unit_file::files(self.snapshot, kubelet::UNIT);
        let values = |key: &str| unit_file::values(self.snapshot, &files, "Service", key);
        let deny = values("IPAddressDeny").iter().any(|value| value == "any");
        let allow = !values("IPAddressAllow").is_empty();
        let blank = blank.at(kubelet::UNIT);
        let expected = "IPAddressDeny=any with IPAddressAllow=";
        match (deny, allow) {
            (true, true) => blank.values(expected, "both are set"),
            (false, true) => blank
                .values(expected, "an allow list that nothing enforces")
                .state(State::Fail)
                .remedy("add IPAddressDeny=any to [Service] in a drop-in of kubelet.service"),
            _ => blank
                .values(expected, "no allow list is configured")
                .state(State::Manual)
                .remedy("decide which addresses may reach the kubelet"),
        }
    }

    fn proxy_metrics(&self, blank: Finding) -> Finding {
        let Some(process) = self.snapshot.process("kube-proxy") else {
            return blank.not_applicable("kube-proxy does not run here");
        };
        let flags = Effective::of(&Snapshot::default(), process.arguments.clone(), String::new());
        let address = flags.flag("metrics-bind-address");
        let blank = blank.at("--metrics-bind-address").origin(format!("process {}", process.pid));
        let expected = "127.0.0.1 or absent";
        match address.as_deref() {
            None if flags.flag("config").is_some() => {
                blank.unknown("kube-proxy reads a config that stands inside its container")
            }
            None => blank.values(expected, "absent"),
            Some(address) if is_loopback(address) => blank.values(expected, "loopback"),
            Some(_) => blank
                .values(expected, "another address")
                .state(State::Fail)
                .remedy("set metricsBindAddress to 127.0.0.1:10249 in kube-proxy's config map"),
        }
    }

    fn user_data(&self, blank: Finding) -> Finding {
        let blank = blank.at(USER_DATA);
        match self.snapshot.text(USER_DATA) {
            Ok(None) => blank.not_applicable("the machine keeps no user data"),
            Err(why) => blank.unknown(why),
            Ok(Some(text)) => match secret_shape(&text) {
                None => blank.values("no secret", "none of the known shapes"),
                Some(shape) => blank
                    .values("no secret", shape)
                    .state(State::Fail)
                    .remedy("take it out of the launch template, and make the secret anew"),
            },
        }
    }

    fn own_units(&self, blank: Finding) -> Finding {
        let own = |name: &String| name.starts_with("tenon") && name.ends_with(".service");
        let units: Vec<String> =
            self.snapshot.list(UNIT_DIRECTORY).into_iter().filter(own).collect();
        let Some(first) = units.first() else {
            return blank.not_applicable("no unit of Tenon is installed");
        };
        let open = units.iter().find(|unit| !self.is_sandboxed(unit));
        let blank = blank.at(open.unwrap_or(first).as_str());
        let expected = "ProtectSystem=strict, NoNewPrivileges=yes";
        match open {
            None => blank.values(expected, "both are set"),
            Some(_) => blank
                .values(expected, "not both are set")
                .state(State::Warn)
                .remedy("render the unit again with `tenon units render`"),
        }
    }

    fn is_sandboxed(&self, unit: &str) -> bool {
        let files = unit_file::files(self.snapshot, unit);
        let last = |key: &str| unit_file::values(self.snapshot, &files, "Service", key).pop();
        let yes = |value: &String| ["yes", "true", "1", "on"].contains(&value.as_str());
        last("ProtectSystem").is_some_and(|value| value == "strict")
            && last("NoNewPrivileges").is_some_and(|value| yes(&value))
    }

    fn restart(&self, blank: Finding) -> Finding {
        let Some(process) = self.snapshot.process("kubelet") else {
            return blank.not_applicable("the kubelet does not run here");
        };
        let blank = blank.at(kubelet::UNIT).origin(format!("process {}", process.pid));
        let pending = |why: String| {
            let remedy = "systemctl restart kubelet.service, or `tenon init`";
            blank.clone().state(State::Warn).values("nothing is pending", why).remedy(remedy)
        };
        let files = match self.files(Role::Config) {
            Ok(files) => files,
            Err(why) => return blank.clone().unknown(why),
        };
        if self.kubelets.as_ref().is_ok_and(|(_, running)| running.is_some()) {
            return pending("its flags are not those of its files".to_owned());
        }
        for path in files.iter().map(String::as_str).chain([ENVIRONMENT_PATH]) {
            match self.snapshot.look(path) {
                Look::There(seen) if process.is_older_than(seen.modified_us) => {
                    return pending(format!("{} is newer", shown_text(path)));
                }
                _ => {}
            }
        }
        blank.values("nothing is pending", "nothing is pending")
    }

    fn parents(&self, blank: Finding) -> Finding {
        let recorded = self.snapshot.record.iter().flat_map(|record| record.files.keys());
        let known = [CONFIG_PATH, CA_PATH, kubeconfig::PATH, ENVIRONMENT_PATH];
        let paths = recorded.map(String::as_str).chain(known);
        let directories: BTreeSet<&str> = paths.flat_map(parents).collect();
        let mut seen_any = false;
        for directory in directories {
            let Look::There(seen) = self.snapshot.look(directory) else { continue };
            let Some(stat) = seen.stat else { continue };
            seen_any = true;
            if stat.mode & 0o002 != 0 {
                return blank
                    .at(directory)
                    .values("not writable by everyone", format!("{:04o}", stat.mode))
                    .state(State::Fail)
                    .remedy(format!("chmod o-w {directory}"))
                    .mend(Mend::Mode { paths: vec![directory.to_owned()], widest: 0o7775 });
            }
        }
        match seen_any {
            true => blank.values("not writable by everyone", "none is"),
            false => blank.unknown("no mode of a directory could be seen"),
        }
    }
}

/// True for text that the redactor of bundles has left its mark in.
fn is_redacted(body: &[u8]) -> bool {
    let mark = b"<redacted:";
    body.windows(mark.len()).any(|window| window == mark)
}

/// The running kubelet's answer where it is the worse one. What its files can be mended by
/// stays; what is right in them already needs a restart alone.
fn worse_now(now: Finding, by_files: Finding) -> Finding {
    let remedy = match by_files.state {
        State::Pass => "systemctl restart kubelet.service: its files are right already".to_owned(),
        _ => now.remedy,
    };
    Finding { remedy, mend: by_files.mend, ..now }
}

fn too_wide(stats: &[(String, Stat)], widest: u32) -> Vec<String> {
    let wide = stats.iter().filter(|(_, stat)| stat.mode & 0o7777 & !widest != 0);
    wide.map(|(path, _)| path.clone()).collect()
}

fn is_loopback(address: &str) -> bool {
    ["127.", "localhost", "[::1]", "::1"].iter().any(|start| address.starts_with(start))
}
