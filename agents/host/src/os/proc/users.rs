//! User names, from `/etc/passwd` alone: a static binary cannot ask the name service.

use std::collections::HashMap;

use super::read_text;

/// Names by uid.
pub struct Users(HashMap<u32, String>);

impl Users {
    pub fn read() -> Self {
        Self(parse(
            &read_text("/etc/passwd", 4 << 20).unwrap_or_default(),
        ))
    }

    /// The name, or the number of a user that has none.
    pub fn name(&self, uid: u32) -> String {
        self.0.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }
}

/// The home folders of a user: by `/etc/passwd`, and by the environment where it is the agent's own.
pub fn homes(uid: u32) -> Vec<String> {
    let passwd = read_text("/etc/passwd", 4 << 20).unwrap_or_default();
    let mut homes = parse_homes(&passwd, uid);
    let own = rustix::process::geteuid().as_raw() == uid;
    homes.extend(std::env::var("HOME").ok().filter(|_| own));
    homes.retain(|home| home.starts_with('/'));
    homes.sort();
    homes.dedup();
    homes
}

fn parse_homes(passwd: &str, uid: u32) -> Vec<String> {
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let matches = fields.next()?.parse() == Ok(uid);
        matches.then(|| fields.nth(2).map(str::to_owned)).flatten()
    };
    passwd.lines().filter_map(home).collect()
}

pub fn parse(passwd: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in passwd.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(uid))) = (fields.next(), fields.nth(1).map(str::parse)) {
            // Several names may share a uid; the first one is what other tools show.
            names.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_user_is_at_home() {
        let passwd = "root:x:0:0:r:/root:/bin/sh\nbroken:x:7\nyarn:x:7:1:a:/var/yarn:c\n";
        assert_eq!(parse_homes(passwd, 7), ["/var/yarn"]);
        assert_eq!(parse_homes(passwd, 1), [""; 0]);
    }

    #[test]
    fn the_first_name_of_a_uid_counts() {
        let names = parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0\nbroken\nyarn:x:990:1:a:b:c\n");
        assert_eq!(names.get(&0).unwrap(), "root");
        assert_eq!(names.get(&990).unwrap(), "yarn");
        assert_eq!(names.len(), 2);
    }
}
