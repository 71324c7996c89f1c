//! The host's `perf`: a program that its administrator installed, and that runs on this kernel.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use rustix::system::uname;

use super::command;
use crate::wire::outcome::{Code, Failure};

/// How long a program may take to print its version.
const ANSWER: Duration = Duration::from_secs(5);
const MOST_TRIED: usize = 16;
const USUAL: [&str; 6] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/bin",
    "/sbin",
];
const REMEDY: &str =
    "install perf (Debian linux-perf, Ubuntu linux-tools-$(uname -r), Red Hat and SUSE perf)";

#[derive(Debug, Clone)]
pub struct Perf {
    pub path: PathBuf,
    /// Such as `6.1.187`.
    pub version: String,
    options: HashSet<String>,
}

impl Perf {
    /// Whether `perf record` knows an option, without its dashes.
    pub fn knows(&self, option: &str) -> bool {
        self.options.contains(option)
    }
}

#[cfg(test)]
impl Perf {
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            version: String::new(),
            options: HashSet::new(),
        }
    }
}

/// The first that runs. The failure names those that are not trusted or do not run.
pub fn find() -> Result<Perf, Failure> {
    let mut refused = Vec::new();
    for path in candidates().into_iter().take(MOST_TRIED) {
        match trusted(&path).and_then(|real| run(&real)) {
            Ok(perf) => return Ok(perf),
            Err(reason) => refused.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(match refused.is_empty() {
        true => Failure::new("perf is not installed on this host", REMEDY).coded(Code::PerfMissing),
        false => Failure::new(
            format!("no perf on this host can be used: {}", refused.join("; ")),
            REMEDY,
        )
        .coded(Code::PerfUnusable),
    })
}

/// Candidates, best first: those called `perf`, then those with a version in their names or folders (`perf_5.10`,
/// `linux-tools-5.10/perf`), this kernel's before others.
fn candidates() -> Vec<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&search)
        .filter(|folder| folder.is_absolute())
        .collect();
    folders.extend(USUAL.map(PathBuf::from));
    let plain = folders.iter().map(|folder| folder.join("perf"));
    let in_name = |name: &str| {
        let version = name.strip_prefix("perf_");
        version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut versioned: Vec<PathBuf> = folders.iter().flat_map(|at| listed(at, in_name)).collect();
    let lib = Path::new("/usr/lib");
    let mut tools = listed(&lib.join("linux-tools"), |_| true);
    tools.extend(listed(lib, |name| name.starts_with("linux-tools-")));
    versioned.extend(tools.iter().map(|folder| folder.join("perf")));
    let kernel = short_release(&uname().release().to_string_lossy());
    versioned.sort_by_key(|path| !path.to_string_lossy().contains(&kernel));
    let mut seen = HashSet::new();
    plain
        .chain(versioned)
        .filter(|path| path.exists() && seen.insert(fs::canonicalize(path).ok()))
        .collect()
}

/// In reverse order: later versions mostly come first.
fn listed(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.reverse();
    paths
}

/// `6.1` of `6.1.0-28-amd64`.
fn short_release(release: &str) -> String {
    let parts: Vec<&str> = release.splitn(3, ['.', '-']).take(2).collect();
    parts.join(".")
}

/// The program behind a name, if only root and the agent's own user can have made or changed it.
fn trusted(path: &Path) -> Result<PathBuf, String> {
    let real = fs::canonicalize(path).map_err(|error| error.to_string())?;
    let own = geteuid().as_raw();
    for place in real.ancestors() {
        let metadata = fs::symlink_metadata(place).map_err(|error| error.to_string())?;
        check_owner(place, &metadata, own)?;
    }
    Ok(real)
}

fn check_owner(place: &Path, metadata: &Metadata, own: u32) -> Result<(), String> {
    const STICKY: u32 = 0o1000;
    let owner = metadata.uid();
    if owner != 0 && owner != own {
        return Err(format!("{} belongs to user {owner}", place.display()));
    }
    let mode = metadata.mode();
    let shared = metadata.is_dir() && mode & STICKY != 0;
    if mode & 0o022 != 0 && !shared {
        let mode = mode & 0o7777;
        return Err(format!(
            "{} is writable by others (mode {mode:o})",
            place.display()
        ));
    }
    Ok(())
}

/// Ubuntu's `perf` is a script that runs the perf of this kernel, and fails if that is not installed.
fn run(path: &Path) -> Result<Perf, String> {
    let ask = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        command::run(path, &words, ANSWER)
    };
    let answer = ask(&["--version"])?;
    let text = String::from_utf8_lossy(&answer.output).into_owned();
    let version = version(&text).filter(|_| answer.good).ok_or_else(|| {
        let mut lines = answer.words.lines().chain(text.lines()).map(str::trim);
        let line = lines.find(|line| !line.is_empty());
        let line = line.unwrap_or("it prints no version").chars();
        line.take(200).collect::<String>()
    })?;
    let options = ask(&["record", "--list-opts"]);
    let options = options.map_or(String::new(), |listed| {
        String::from_utf8_lossy(&listed.output).into_owned()
    });
    let words = options.split_ascii_whitespace();
    Ok(Perf {
        path: path.to_owned(),
        version,
        options: words
            .map(|word| word.trim_start_matches('-').to_owned())
            .collect(),
    })
}

pub fn version(text: &str) -> Option<String> {
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("perf version "))?;
    let version = version.split_ascii_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+~".contains(c);
    let fits = version.len() <= 80 && version.chars().all(plain);
    fits.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn versions() {
        for (text, want) in [
            ("perf version 6.1.187\n", Some("6.1.187")),
            (
                "perf version 4.18.0-372.el8.x86_64.debug\n",
                Some("4.18.0-372.el8.x86_64.debug"),
            ),
            ("WARNING: perf not found for kernel 5.15.0-91\n", None),
            ("perf version \u{1b}[1m\n", None),
            ("", None),
        ] {
            assert_eq!(version(text).as_deref(), want, "{text:?}");
        }
        assert_eq!(short_release("6.1.0-28-amd64"), "6.1");
        assert_eq!(short_release("5.14-rc1"), "5.14");
    }

    #[test]
    fn what_others_may_change_is_not_run() {
        let folder = Folder::new();
        let (good, link) = (folder.put("perf", ""), folder.join("link"));
        set_mode(&good, 0o755);
        symlink(&good, &link).unwrap();
        assert_eq!(trusted(&link), Ok(fs::canonicalize(&good).unwrap()));
        let open = folder.put("open", "");
        set_mode(&open, 0o777);
        assert!(trusted(&open).unwrap_err().contains("writable by others"));
        let below = folder.put("wide/perf", "");
        set_mode(&below, 0o755);
        set_mode(&folder.join("wide"), 0o775);
        assert!(trusted(&below).unwrap_err().contains("writable by others"));
        assert!(trusted(&folder.join("missing")).is_err());
    }
}
