//! Names and home folders of users, from `/etc/passwd`, and from `getent` for users of LDAP and the like: a static
//! binary cannot use the name service itself.

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

#[derive(Clone)]
pub struct User {
    name: String,
    /// Those of all names that share the uid.
    homes: Vec<String>,
}

pub struct Users {
    local: HashMap<u32, User>,
    getent: Option<String>,
    /// The answers of `getent`; None: the user has no name, or the name service is too slow.
    asked: Mutex<HashMap<u32, Option<User>>>,
    is_slow: AtomicBool,
}

impl Users {
    pub fn read() -> Self {
        let passwd = read_text("/etc/passwd", 4 << 20).unwrap_or_default();
        let getent = GETENT.into_iter().find(|path| Path::new(path).exists());
        Self::new(parse(&passwd), getent.map(str::to_owned))
    }

    fn new(local: HashMap<u32, User>, getent: Option<String>) -> Self {
        Self {
            local,
            getent,
            asked: Mutex::default(),
            is_slow: AtomicBool::new(false),
        }
    }

    /// The name, or the number of a user without one.
    pub fn name(&self, uid: u32) -> String {
        self.find(uid)
            .map_or_else(|| uid.to_string(), |user| user.name)
    }

    /// The home folders of a user, and `$HOME`, which may be another one.
    pub fn homes(&self, uid: u32) -> Vec<String> {
        let mut homes = self.find(uid).map(|user| user.homes).unwrap_or_default();
        homes.extend(std::env::var("HOME"));
        homes.retain(|home| home.starts_with('/'));
        homes.sort();
        homes.dedup();
        homes
    }

    fn find(&self, uid: u32) -> Option<User> {
        self.local.get(&uid).cloned().or_else(|| self.ask(uid))
    }

    fn ask(&self, uid: u32) -> Option<User> {
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

pub fn parse(passwd: &str) -> HashMap<u32, User> {
    let mut users = HashMap::new();
    let entries = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        Some((name, uid, fields.nth(2).unwrap_or_default()))
    });
    for (name, uid, home) in entries {
        // Several names may share a uid; the first one is what other tools show.
        let user = users.entry(uid).or_insert_with(|| User {
            name: name.to_owned(),
            homes: Vec::new(),
        });
        user.homes.push(home.to_owned());
    }
    users
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
        assert!(users.homes(71234).contains(&"/home/alice".to_owned()));
    }

    #[test]
    fn the_first_name_of_a_uid_counts_and_every_home() {
        let users = parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/toor\nbroken\nyarn:x:990:1\n");
        assert_eq!((&*users[&0].name, &*users[&990].name), ("root", "yarn"));
        assert_eq!(users[&0].homes, ["/root", "/toor"]);
        assert_eq!(users.len(), 2);
    }
}
