//! The container that a process is in, by its environment, its control group, or its command line. A Spark driver that
//! is in no container is known by its port.

use std::collections::{BTreeMap, HashSet};

use crate::discovery::listening;
use crate::discovery::scan::Seen;
use crate::os::proc::target::Target;
use crate::os::proc::{mask, read_text};
use crate::wire::outcome::Failure;

const MOST: usize = 10_000;
const LONGEST: usize = 128;
/// The prefixes that container runtimes put before the id if systemd manages the control groups.
const SCOPES: [&str; 4] = ["cri-containerd-", "crio-", "docker-", "libpod-"];
const DRIVER: &str = "spark_driver_";
const SPARK: &str = "org.apache.spark.";
/// The programs with which YARN starts a container.
const WRAPPERS: [&str; 5] = ["sh", "bash", "dash", "container-executor", "setsid"];

pub struct Containers {
    ids: HashSet<String>,
    /// What ids of further containers begin with.
    prefixes: Vec<String>,
    /// The ids of Spark drivers outside containers, with their ports.
    drivers: Vec<(u16, String)>,
}

impl Containers {
    pub fn new(ids: Vec<String>) -> Result<Self, Failure> {
        if ids.len() > MOST {
            return Err(Failure::plain(format!("more than {MOST} containers")));
        }
        let beginning = |id: &String| id.strip_suffix('*').map(str::to_owned);
        let named = |id: &String| beginning(id).unwrap_or_else(|| id.clone());
        if let Some(id) = ids.iter().find(|id| !is_plain(&named(id))) {
            return Err(Failure::plain(format!("{id:?} is not a container id")));
        }
        Ok(Self {
            drivers: ids.iter().filter_map(|id| driver(id)).collect(),
            prefixes: ids.iter().filter_map(beginning).collect(),
            ids: ids.into_iter().filter(|id| !id.ends_with('*')).collect(),
        })
    }

    /// The container of a process, if it is one of these.
    pub fn of(&self, process: &Seen, environment: &BTreeMap<String, String>) -> Option<Membership> {
        let path = format!("/proc/{}/cgroup", process.pid);
        let cgroup = read_text(path, 1 << 20).unwrap_or_default();
        let found = self.membership(environment, &cgroup, &process.command);
        found.or_else(|| Some(Membership::own(self.as_driver(process, environment)?)))
    }

    /// The id of the driver that a process is. A port alone proves nothing: the listener must be Spark's, and must not
    /// claim to be in another application's container.
    fn as_driver(&self, process: &Seen, environment: &BTreeMap<String, String>) -> Option<&str> {
        let is_spark = process.jvm.is_some() && process.launch.main_class().starts_with(SPARK);
        if !is_spark || environment.contains_key("CONTAINER_ID") {
            return None;
        }
        let mut drivers = self.drivers.iter();
        let process = Target::open(process.pid, process.start_time).ok()?;
        let found = drivers.find(|(port, _)| listening::at(&process, *port))?;
        Some(found.1.as_str())
    }

    /// The control group takes precedence, then `CONTAINER_ID`. A mention of the id counts least, because processes of
    /// other containers may mention it too.
    pub fn membership(
        &self,
        environment: &BTreeMap<String, String>,
        cgroup: &str,
        command: &[String],
    ) -> Option<Membership> {
        let (delegated, given): (Vec<&str>, Vec<&str>) = groups(cgroup).partition(is_delegated);
        if let Some(id) = self.in_control_groups(given) {
            return Some(Membership {
                id: id.to_owned(),
                evidence: Evidence::Kernel,
            });
        }
        let own = environment.get("CONTAINER_ID");
        let known = own.and_then(|id| self.known(id));
        let known = known.or_else(|| self.in_control_groups(delegated));
        let claimed = |id: &str| Membership {
            id: id.to_owned(),
            evidence: match self.ids.contains(id) {
                true => Evidence::Own,
                false => Evidence::Unlisted,
            },
        };
        // Masked: with enough ids, mentions could reveal a secret.
        let mention = || {
            let variables = environment.iter();
            let shown = variables.map(|(name, value)| mask::variable(name, value));
            let mut texts = mask::words(command).into_iter().chain(shown);
            texts.find_map(|text| words(&text).find_map(|word| self.ids.get(word)))
        };
        let mention = || own.is_none().then(mention).flatten().map(String::as_str);
        known.or_else(mention).map(claimed)
    }

    /// Of paths such as `/hadoop-yarn/container_…` or `/kubepods.slice/…/cri-containerd-HEX.scope`. If only kubelet
    /// uses systemd, the last part is `kubepods-….slice:cri-containerd:HEX`.
    fn in_control_groups<'a>(&self, paths: Vec<&'a str>) -> Option<&'a str> {
        let mut parts = paths.into_iter().flat_map(|path| path.split('/'));
        parts.find_map(|part| {
            let unit = part.strip_suffix(".scope").unwrap_or(part);
            let unit = unit.rsplit(':').next().unwrap_or(unit);
            let id = SCOPES.iter().find_map(|scope| unit.strip_prefix(scope));
            self.known(id.unwrap_or(unit))
        })
    }

    fn known<'a>(&self, id: &'a str) -> Option<&'a str> {
        let begins = |prefix: &String| is_plain(id) && id.starts_with(prefix.as_str());
        let is_meant = self.ids.contains(id) || self.prefixes.iter().any(begins);
        is_meant.then_some(id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub id: String,
    pub evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Only root can put a process into such a control group.
    Kernel,
    /// The process's user could have claimed it.
    Own,
    /// So it is, and the coordinator does not know the container yet, only its application.
    Unlisted,
}

impl Membership {
    fn own(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            evidence: Evidence::Own,
        }
    }
}

/// The paths of `N:controllers:/PATH` and `0::/PATH`.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

/// Below it systemd lets users make groups with any name.
fn is_delegated(path: &&str) -> bool {
    path.split('/').any(|part| part == "user.slice")
}

/// Whether a text holds the id as a whole word.
pub fn mentions(text: &str, id: &str) -> bool {
    words(text).any(|word| word == id)
}

fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.len() <= LONGEST && words(id).eq([id])
}

fn driver(id: &str) -> Option<(u16, String)> {
    let port = id.strip_prefix(DRIVER)?.parse().ok()?;
    Some((port, id.to_owned()))
}

pub fn is_wrapper(process: &Seen) -> bool {
    WRAPPERS.contains(&process.program.as_str())
}

/// Why a process of a container that is not a JVM is ignored. None: every container is started by such a program.
pub fn helper(process: &Seen) -> Option<String> {
    if is_wrapper(process) {
        return None;
    }
    let program = process.program.as_str();
    let python = ["python", "pypy"]
        .iter()
        .any(|name| program.starts_with(name));
    let what = if python { "Python worker" } else { "helper" };
    let label = process.plain_label();
    Some(format!("{what}: not a JVM ({label})"))
}

/// Runs of letters, digits and `_`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const YARN: &str = "container_e17_1700000000000_0042_01_000003";
    const POD: &str = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100";

    fn container_of(environment: &[(&str, &str)], cgroup: &str, command: &str) -> Option<String> {
        let containers = Containers::new(vec![YARN.to_owned(), POD.to_owned()]).unwrap();
        let environment = environment.iter();
        let environment = environment.map(|(name, value)| (name.to_string(), value.to_string()));
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let found = containers.membership(&environment.collect(), cgroup, &command);
        found.map(|membership| membership.id)
    }

    #[test]
    fn control_groups_of_all_kinds() {
        for (path, want) in [
            (format!("4:cpu,cpuacct:/hadoop-yarn/{YARN}"), Some(YARN)),
            (
                format!("1:name=systemd:/\n0::/hadoop-yarn/{YARN}"),
                Some(YARN),
            ),
            (format!("0::/hadoop-yarn/{YARN}1"), None),
            (
                format!("11:memory:/kubepods/burstable/pod12-34/{POD}"),
                Some(POD),
            ),
            (
                format!(
                    "12:pids:/kubepods.slice/kubepods-pod1.slice/cri-containerd-{POD}.scope\n0::/"
                ),
                Some(POD),
            ),
            (
                format!("1:name=systemd:/kubepods.slice/kubepods-pod1.slice/docker-{POD}.scope"),
                Some(POD),
            ),
            (
                format!("7:cpu,cpuacct:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{POD}"),
                Some(POD),
            ),
            (
                format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{POD}.scope"),
                Some(POD),
            ),
            (
                format!("0::/kubepods.slice/a.slice/crio-{POD}.scope/container"),
                Some(POD),
            ),
            (
                format!("0::/kubepods.slice/a.slice/crio-conmon-{POD}.scope"),
                None,
            ),
            (format!("0::/system.slice/docker-{POD}.scope"), Some(POD)),
            (format!("0::/docker/{POD}"), Some(POD)),
            (format!("0::/a:b/{POD}"), Some(POD)),
            ("0::/user.slice".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(container_of(&[], &path, "java Main").as_deref(), want, "{path}");
        }
    }

    #[test]
    fn the_kernels_word_is_not_the_users() {
        let containers = Containers::new(vec![YARN.to_owned(), POD.to_owned()]).unwrap();
        let claimed = BTreeMap::from([("CONTAINER_ID".to_owned(), YARN.to_owned())]);
        let unit = "/user.slice/user-7.slice/user@7.service";
        for (cgroup, environment, want) in [
            (
                format!("0::/hadoop-yarn/{YARN}"),
                BTreeMap::new(),
                (YARN, Evidence::Kernel),
            ),
            (
                format!("0::/kubepods/{POD}"),
                claimed.clone(),
                (POD, Evidence::Kernel),
            ),
            (
                format!("0::{unit}/{POD}"),
                BTreeMap::new(),
                (POD, Evidence::Own),
            ),
            (
                format!("0::{unit}/{POD}"),
                claimed.clone(),
                (YARN, Evidence::Own),
            ),
            ("0::/".to_owned(), claimed, (YARN, Evidence::Own)),
        ] {
            let membership = containers.membership(&environment, &cgroup, &[]).unwrap();
            assert_eq!(
                (membership.id.as_str(), membership.evidence),
                want,
                "{cgroup}"
            );
        }
    }

    #[test]
    fn what_a_process_says_of_itself_goes_before_what_it_mentions() {
        let other = ("CONTAINER_ID", "container_1_1_1_1");
        let mention = format!("java -Dlog=/logs/{YARN} Main");
        for (environment, cgroup, command, want) in [
            (vec![("CONTAINER_ID", YARN)], "", "java Main", Some(YARN)),
            (vec![], "", mention.as_str(), Some(YARN)),
            (
                vec![("LOG_DIRS", mention.as_str())],
                "",
                "java Main",
                Some(YARN),
            ),
            (vec![other], "", mention.as_str(), None),
            (vec![other], &format!("0::/{POD}"), "java Main", Some(POD)),
            (vec![], "", &format!("java {YARN}0"), None),
            (vec![], "", &format!("java x{YARN}"), None),
            // Secrets cannot be guessed by their mentions.
            (vec![], "", &format!("java Main --token {YARN}"), None),
            (vec![("DB_PASSWORD", YARN)], "", "java Main", None),
        ] {
            let found = container_of(&environment, cgroup, command);
            assert_eq!(found.as_deref(), want, "{environment:?} {cgroup} {command}");
        }
    }

    #[test]
    fn containers_of_an_application_that_start_later() {
        let ids = vec!["container_1_0042_01_000001", "container_1_0042_*"];
        let containers = Containers::new(ids.into_iter().map(str::to_owned).collect()).unwrap();
        let of = |variable: &str, cgroup: &str, command: &str| {
            let environment = BTreeMap::from([("CONTAINER_ID".to_owned(), variable.to_owned())]);
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let environment = match variable {
                "" => BTreeMap::new(),
                _ => environment,
            };
            let found = containers.membership(&environment, cgroup, &command)?;
            Some((found.id, found.evidence))
        };
        let found = |id: &str, evidence| Some((id.to_owned(), evidence));
        let (first, later) = ("container_1_0042_01_000001", "container_1_0042_02_000003");
        assert_eq!(of(first, "", "java"), found(first, Evidence::Own));
        assert_eq!(of(later, "", "java"), found(later, Evidence::Unlisted));
        let cgroup = format!("0::/hadoop-yarn/{later}");
        assert_eq!(of("", &cgroup, "java"), found(later, Evidence::Kernel));
        assert_eq!(of("", "", &format!("java -Dlog={later}")), None);
        assert_eq!(of("container_1_00421_01_000001", "", "java"), None);
        assert_eq!(of("container_1_0042_01_../x", "", "java"), None);
    }

    #[test]
    fn only_ids_are_taken() {
        for ids in [
            vec![""],
            vec!["*"],
            vec!["a*b"],
            vec!["a b"],
            vec!["a/b"],
            vec!["a", "../b"],
        ] {
            let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
            assert!(Containers::new(ids).is_err());
        }
        assert!(Containers::new(vec!["a".repeat(LONGEST + 1)]).is_err());
        assert!(Containers::new(vec!["a".to_owned(); MOST + 1]).is_err());
    }
}
