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
