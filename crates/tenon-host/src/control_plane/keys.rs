//! placeholder until pki is merged
use super::Bootstrap;
use crate::stages::{Check, Run, Step};
use tenon_core::problem::Problem;
pub(super) const PKI: Step<Bootstrap> = Step {
    name: "pki",
    check: |_, _| Ok(Check::Needed),
    apply: |_, run| super::claim::record_ca(run),
    verify: None,
};
pub(super) const KUBECONFIG: Step<Bootstrap> = Step {
    name: "kubeconfig",
    check: |_, _| Ok(Check::Needed),
    apply: |_, _| Ok(()),
    verify: None,
};
pub(super) fn bootstrap_secrets(_b: &Bootstrap, _run: &Run<'_>) -> Result<(), Problem> {
    Ok(())
}
