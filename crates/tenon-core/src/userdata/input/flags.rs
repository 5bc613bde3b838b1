//! Labels and taints as they are written on a command line.

use crate::codes::userdata as pages;
use crate::config::Taint;
use crate::problem::{Place, Problem};

/// `key=value`
pub fn label(text: &str) -> Result<(String, String), Problem> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| {
        Problem::new(&pages::BAD_LABEL, "--label is not of the form key=value")
            .at(Place::field("--label"))
    })
}

/// `key=value:Effect`, or `key:Effect` for a taint without a value.
pub fn taint(text: &str) -> Result<Taint, Problem> {
    let parsed = text.rsplit_once(':').map(|(pair, effect)| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
    });
    parsed.ok_or_else(|| {
        Problem::new(&pages::BAD_TAINT, "--taint is not of the form key=value:Effect")
            .at(Place::field("--taint"))
    })
}

/// A comma-separated list of labels, as `--node-labels` of the kubelet has it.
pub fn labels(text: &str) -> Option<Vec<(String, String)>> {
    text.split(',').filter(|pair| !pair.is_empty()).map(|pair| label(pair).ok()).collect()
}

/// A comma-separated list of taints, as `--register-with-taints` of the kubelet has it.
pub fn taints(text: &str) -> Option<Vec<Taint>> {
    text.split(',').filter(|pair| !pair.is_empty()).map(|pair| taint(pair).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_may_lack_a_value() {
        assert_eq!(
            taint("a=b:NoSchedule").unwrap(),
            Taint { key: "a".into(), value: "b".into(), effect: "NoSchedule".into() }
        );
        assert_eq!(taint("a:NoExecute").unwrap().value, "");
        assert!(taint("a").is_err());
        assert!(label("a").is_err());
        assert_eq!(labels("a=b,c=").unwrap().len(), 2);
    }
}
