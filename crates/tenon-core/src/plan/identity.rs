//! What a kubelet on another machine left in the image: reported, and removed when asked to.

use super::node::Node;
use super::step::{Action, Step};
use super::{Draft, Options, Owner};
use crate::codes;
use crate::problem::{Finding, Problem};

/// Plans the removal, or warns where the record shows that it is due.
pub(crate) fn plan(node: &Node, options: &Options, draft: &mut Draft) {
    let found = &node.facts.machine.kubelet_identity;
    if found.is_empty() || node.facts.last_run_here().is_some() {
        return;
    }
    if options.reset_identity {
        for path in found {
            let action = Action::Discard { path: path.clone() };
            draft.add(Owner::Kubelet, Step::config(action, "--reset-identity"));
        }
    } else if node.facts.last_run.is_some() {
        let what = "the kubelet's identity is another machine's";
        let problem = Problem::new(&codes::plan::FOREIGN_IDENTITY, what).details(found.clone());
        draft.findings.push(Finding::warning(problem));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::facts::LastRun;

    #[test]
    fn fault_46_only_an_identity_that_is_not_ours_is_touched() {
        // Record of, flag given -> paths discarded, warnings.
        let cases = [
            (Some("i-0abc12345678def90"), true, 0, 0),
            (Some("i-0abc12345678def90"), false, 0, 0),
            (Some("i-0other"), true, 1, 0),
            (Some("i-0other"), false, 0, 1),
            // Without a record nobody knows whose it is; the flag says so.
            (None, true, 1, 0),
            (None, false, 0, 0),
        ];
        for (record, reset_identity, discarded, warned) in cases {
            let (config, mut facts) = (fixture::config(), fixture::facts());
            facts.machine.kubelet_identity = vec!["/var/lib/kubelet/pki".into()];
            facts.last_run =
                record.map(|id| LastRun { instance_id: id.into(), ..LastRun::default() });
            let mut draft = Draft::default();
            let node = Node::resolve(&config, &facts, &mut draft).unwrap();
            plan(&node, &Options { reset_identity, ..Options::default() }, &mut draft);
            let found = (draft.steps.len(), draft.findings.len());
            assert_eq!(found, (discarded, warned), "{record:?} {reset_identity}");
        }
    }
}
