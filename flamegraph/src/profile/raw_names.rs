//! What canonical names stand for.

use std::collections::{BTreeMap, BTreeSet};

use crate::profile::Profile;

/// Most raw names remembered for one canonical name: a cluster has a new one for every JVM and lambda.
const MOST: usize = 1000;

/// For each canonical name the raw names it stands for; names that were left alone are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawNames(BTreeMap<String, BTreeSet<String>>);

impl RawNames {
    /// Remembers one raw name.
    pub(crate) fn insert(&mut self, canonical: &str, raw: &str) {
        let names = self.0.entry(canonical.to_string()).or_default();
        if names.len() < MOST {
            names.insert(raw.to_string());
        }
    }

    /// Remembers all that another profile does.
    pub(crate) fn add(&mut self, other: &RawNames) {
        for (canonical, raws) in &other.0 {
            for raw in raws {
                self.insert(canonical, raw);
            }
        }
    }
}

impl Profile {
    /// For each name that was made canonical, the raw names it stands for; the first 1000 of each.
    pub fn raw_names(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        let names = self.raw_names.0.iter();
        names.map(|(canonical, raws)| (canonical.as_str(), raws))
    }
}
