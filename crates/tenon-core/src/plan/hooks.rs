//! The user's own programs, at their three places.

use super::node::Node;
use super::step::{Action, HookStage, Step};
use super::{Draft, Owner};
use crate::config::Hook;

/// Before facts are gathered. In the plan so that it is shown; run ahead of it.
pub(crate) fn before(node: &Node, draft: &mut Draft) {
    add(&node.config.hooks.pre_bootstrap, HookStage::PreBootstrap, Step::config, draft);
}

/// When all files are written and nothing is started yet.
pub(crate) fn after_config(node: &Node, draft: &mut Draft) {
    add(&node.config.hooks.post_config, HookStage::PostConfig, Step::config, draft);
}

/// When the kubelet is healthy.
pub(crate) fn after_join(node: &Node, draft: &mut Draft) {
    add(&node.config.hooks.post_join, HookStage::PostJoin, Step::run, draft);
}

fn add(
    hooks: &[Hook],
    stage: HookStage,
    step: fn(Action, &'static str) -> Step,
    draft: &mut Draft,
) {
    for hook in hooks {
        let action = Action::Hook { stage, hook: hook.clone() };
        draft.add(Owner::Node, step(action, "spec.hooks"));
    }
}
