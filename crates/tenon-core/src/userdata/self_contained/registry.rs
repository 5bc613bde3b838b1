//! Which account holds the images of EKS in a region.

/// The account of the older regions.
const USUAL: &str = "602401143452";

/// Regions with an account of their own, from the table in the EKS user guide.
const OTHERS: [(&str, &str); 22] = [
    ("af-south-1", "877085696533"),
    ("ap-east-1", "800184023465"),
    ("ap-east-2", "533267051163"),
    ("ap-south-2", "900889452093"),
    ("ap-southeast-3", "296578399912"),
    ("ap-southeast-4", "491585149902"),
    ("ap-southeast-5", "151610086707"),
    ("ap-southeast-6", "333609536671"),
    ("ap-southeast-7", "121268973566"),
    ("ca-west-1", "761377655185"),
    ("cn-north-1", "918309763551"),
    ("cn-northwest-1", "961992271922"),
    ("eu-central-2", "900612956339"),
    ("eu-south-1", "590381155156"),
    ("eu-south-2", "455263428931"),
    ("il-central-1", "066635153087"),
    ("me-central-1", "759879836304"),
    ("me-south-1", "558608220178"),
    ("mx-central-1", "730335286997"),
    ("us-gov-east-1", "151742754352"),
    ("us-gov-west-1", "013241004608"),
    ("us-iso-east-1", "725322719131"),
];

pub fn account(region: &str) -> &'static str {
    OTHERS.iter().find(|(name, _)| *name == region).map_or(USUAL, |(_, account)| account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_their_accounts() {
        for (region, wanted) in
            [("eu-west-1", USUAL), ("ap-east-1", "800184023465"), ("us-gov-west-1", "013241004608")]
        {
            assert_eq!(account(region), wanted);
        }
    }
}
