//! User names, from `/etc/passwd`, and from `getent` for users of LDAP and the like: a static binary cannot use the
//! name service itself.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::read_text;
use crate::os::audit;
use crate::os::worker_pool;

const GETENT: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];
/// The time limit of a name service. A slower one is not queried again.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_ASKED: usize = 200;

pub struct Users {
    local: HashMap<u32, String>,
    getent: Option<String>,
    /// The answers of `getent`; None: the user has no name, or the name service is too slow.
    asked: Mutex<HashMap<u32, Option<String>>>,
    is_slow: AtomicBool,
}

impl Users {
    pub fn read() -> Self {
        let passwd = read_text("/etc/passwd", 4 << 20).unwrap_or_default();
        let getent = GETENT.into_iter().find(|path| Path::new(path).exists());
        Self::new(parse(&passwd), getent.map(str::to_owned))
    }

    fn new(local: HashMap<u32, String>, getent: Option<String>) -> Self {
        Self {
            local,
            getent,
            asked: Mutex::default(),
            is_slow: AtomicBool::new(false),
        }
    }

    /// The name, or the number of a user without one.
    pub fn name(&self, uid: u32) -> String {
        let name = self.local.get(&uid).cloned().or_else(|| self.ask(uid));
        name.unwrap_or_else(|| uid.to_string())
    }

    fn ask(&self, uid: u32) -> Option<String> {
        let getent = self.getent.clone()?;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= MOST_ASKED || self.is_slow.load(Ordering::Relaxed) {
            return asked.get(&uid).cloned().flatten();
        }
        let answer = asked.entry(uid).or_insert_with(|| {
            audit::note("program", || format!("{getent} passwd {uid}"));
            let answer = worker_pool::run(PATIENCE, move || {
                let mut command = Command::new(getent);
                command.args(["passwd", &uid.to_string()]).env_clear();
                let quiet = command.stdin(Stdio::null()).stderr(Stdio::null());
                quiet.output().map(|output| output.stdout)
            });
            self.is_slow.store(answer.is_err(), Ordering::Relaxed);
            parse(&String::from_utf8_lossy(&answer.ok()?.ok()?)).remove(&uid)
        });
        answer.clone()
    }
}

/// The home folders of a user, from `/etc/passwd`, and from the environment if it is the agent's own.
pub fn homes(uid: u32) -> Vec<String> {
    let passwd = read_text("/etc/passwd", 4 << 20).unwrap_or_default();
    let homes = entries(&passwd).filter(|entry| entry.1 == uid);
    let mut homes: Vec<String> = homes.map(|(_, _, home)| home.to_owned()).collect();
    let own = rustix::process::geteuid().as_raw() == uid;
    homes.extend(std::env::var("HOME").ok().filter(|_| own));
    homes.retain(|home| home.starts_with('/'));
    homes.sort();
    homes.dedup();
    homes
}

/// Each line's name, uid and home folder.
fn entries(passwd: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        Some((name, uid, fields.nth(2).unwrap_or_default()))
    })
}

pub fn parse(passwd: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for (name, uid, _) in entries(passwd) {
        // Several names may share a uid; the first one is what other tools show.
        names.entry(uid).or_insert_with(|| name.to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_user_that_is_not_local_is_asked_for() {
        let folder = Folder::new();
        let answer = "#!/bin/sh\n[ $2 = 71234 ] && echo alice:x:71234:1::/home/alice:/bin/sh\n";
        let path = folder.put("getent", answer);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let local = parse("root:x:0:0:r:/root:/bin/sh\n");
        let users = Users::new(local, path.to_str().map(str::to_owned));
        assert_eq!(users.name(0), "root");
        assert_eq!(users.name(71234), "alice");
        assert_eq!(users.name(71235), "71235");
    }

    #[test]
    fn the_first_name_of_a_uid_counts() {
        let names = parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0\nbroken\nyarn:x:990:1:a:b:c\n");
        assert_eq!(names.get(&0).unwrap(), "root");
        assert_eq!(names.get(&990).unwrap(), "yarn");
        assert_eq!(names.len(), 2);
    }
}
