//! Decides which users to believe if processes of several users claim the same container. Any user can put an id into
//! an environment or an argument. Only root controls control groups, what root runs, and what the cluster says about
//! users.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::discovery::containers::{mentions, Evidence, Membership};
use crate::discovery::listening;
use crate::discovery::scan::Seen;

/// The program with which root starts YARN containers as their application's user.
const EXECUTOR: &str = "container-executor";
/// No process that YARN starts has more ancestors.
const DEEPEST: usize = 64;

/// What the coordinator knows about the users of containers.
#[derive(Default)]
pub struct TrustedFacts {
    /// The user of each container's application, by container id, or by how the ids of an application's containers
    /// begin (`container_1_0042_*`).
    pub owners: BTreeMap<String, String>,
    /// The NodeManager's port. Its user may run all containers.
    pub manager_port: Option<u16>,
}

impl TrustedFacts {
    fn owner(&self, id: &str) -> Option<&String> {
        let begins = |name: &str| name.strip_suffix('*').is_some_and(|it| id.starts_with(it));
        let by_beginning = || self.owners.iter().find(|(name, _)| begins(name));
        let exact = self.owners.get(id);
        exact.or_else(|| by_beginning().map(|(_, user)| user))
    }
}

/// The container of each process; Err if its claim is not believed. `memberships` are those of `seen`.
pub fn settle(
    seen: &[Seen],
    memberships: Vec<Option<Membership>>,
    trusted: &TrustedFacts,
) -> Vec<Option<Result<String, String>>> {
    let mut claims: HashMap<&str, Vec<Claim>> = HashMap::new();
    for (process, membership) in seen.iter().zip(&memberships) {
        if let Some(membership) = membership {
            let claim = Claim {
                process,
                evidence: membership.evidence,
            };
            claims.entry(&membership.id).or_default().push(claim);
        }
    }
    let family = Family::of(seen);
    // Read only if needed: hosts have many sockets.
    let managers = LazyCell::new(|| {
        let port = trusted.manager_port;
        port.map(listening::users_at).unwrap_or_default()
    });
    let doubted: HashSet<i32> = claims
        .into_iter()
        .flat_map(|(id, claims)| doubted(id, claims, trusted, &managers, &family))
        .collect();
    let pairs = seen.iter().zip(memberships);
    pairs
        .map(|(process, membership)| {
            membership.map(|membership| match doubted.contains(&process.pid) {
                true => Err(membership.id),
                false => Ok(membership.id),
            })
        })
        .collect()
}

struct Claim<'a> {
    process: &'a Seen,
    evidence: Evidence,
}

/// The processes that claim the container but are not in it. If nothing distinguishes the users, all are believed, but
/// nobody where the coordinator does not know the container yet.
fn doubted(
    id: &str,
    claims: Vec<Claim>,
    trusted: &TrustedFacts,
    managers: &LazyCell<BTreeSet<u32>, impl FnOnce() -> BTreeSet<u32>>,
    family: &Family,
) -> Vec<i32> {
    let by_kernel = |claim: &Claim| claim.evidence == Evidence::Kernel;
    if claims.iter().any(by_kernel) {
        return pids(claims, |claim| !by_kernel(claim));
    }
    let users: BTreeSet<u32> = claims.iter().map(|claim| claim.process.uid).collect();
    let listed = claims.iter().all(|it| it.evidence != Evidence::Unlisted);
    if listed && users.len() < 2 {
        return Vec::new();
    }
    // A helper of root's own, such as Docker's client, does not show whose container it is.
    let started =
        |claim: &&Claim| claim.process.uid != 0 && family.started_by_root(claim.process, id);
    let mut believed = uids(claims.iter().filter(started));
    if believed.is_empty() {
        let owner = trusted.owner(id);
        let owns = |claim: &&Claim| owner == Some(&claim.process.user);
        believed = uids(claims.iter().filter(owns));
        believed.extend(users.intersection(managers));
    }
    if listed && believed.is_empty() {
        return Vec::new();
    }
    pids(claims, |claim| !believed.contains(&claim.process.uid))
}

fn uids<'a>(claims: impl Iterator<Item = &'a Claim<'a>>) -> BTreeSet<u32> {
    claims.map(|claim| claim.process.uid).collect()
}

fn pids(claims: Vec<Claim>, which: impl Fn(&Claim) -> bool) -> Vec<i32> {
    let those = claims.into_iter().filter(|claim| which(claim));
    those.map(|claim| claim.process.pid).collect()
}

struct Family<'a>(HashMap<i32, &'a Seen>);

impl<'a> Family<'a> {
    fn of(seen: &'a [Seen]) -> Self {
        Self(seen.iter().map(|process| (process.pid, process)).collect())
    }

    /// Whether it descends from a program of root that started this container.
    fn started_by_root(&self, process: &Seen, id: &str) -> bool {
        let parent = |process: &&'a Seen| self.0.get(&process.ppid).copied();
        let ancestors = std::iter::successors(self.0.get(&process.ppid).copied(), parent);
        ancestors.take(DEEPEST).any(|ancestor| {
            ancestor.uid == 0
                && ancestor.program == EXECUTOR
                && ancestor.command.iter().any(|word| mentions(word, id))
        })
    }
}

#[cfg(test)]
mod tests;
