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
    fn the_first_name_of_a_uid_counts() {
        let names = parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0\nbroken\nyarn:x:990:1:a:b:c\n");
        assert_eq!(names.get(&0).unwrap(), "root");
        assert_eq!(names.get(&990).unwrap(), "yarn");
        assert_eq!(names.len(), 2);
    }
}
