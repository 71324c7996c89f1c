//! A map of compiled code as the JVM wrote it: an open file, which may have no name any more.
//!
//! It is read when the recording's turn to be folded has come. So the agent holds one map in its memory, however many
//! JVMs end together.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::time::SystemTime;

use flamegraph::perf_data::JitMap;
use rustix::fd::AsFd;

use crate::os::files::open_regular;

/// The largest map that is read, in bytes: less than the format's 256 MiB. One of 100,000 methods is not half of it.
const MOST: u64 = 64 << 20;

/// What it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// That of our own agent.
    Binary,
    /// That of `perf-PID.map`.
    Text,
}

pub struct Written {
    file: File,
    form: Form,
}

impl Written {
    /// The map of that name, which must be the owner's. Err says why there is none.
    pub fn open(dir: impl AsFd, name: &str, owner: u32, form: Form) -> Result<Self, String> {
        match open_regular(dir, name, Some(owner), MOST) {
            Ok((_, 0)) => Err("the map is empty".to_owned()),
            Ok((file, _)) => Ok(Self { file, form }),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Whether it was last written to at that time or later.
    pub fn is_since(&self, time: SystemTime) -> bool {
        let written = self.file.metadata().and_then(|file| file.modified());
        written.is_ok_and(|written| written >= time)
    }

    /// What it says by now; its owner may have changed it.
    pub fn read(mut self) -> Result<JitMap, String> {
        self.file.rewind().map_err(|error| unreadable(&error))?;
        let bytes = self.file.take(MOST);
        let read = match self.form {
            Form::Binary => JitMap::binary(bytes),
            Form::Text => JitMap::text(bytes),
        };
        match read {
            Ok(map) if map.is_empty() => Err("the map is empty".to_owned()),
            read => read.map_err(|error| error.to_string()),
        }
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("the map cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::proc::target::Target;
    use rustix::process::geteuid;
    use std::fs::{create_dir, remove_dir_all, remove_file, write};
    use std::time::Duration;

    #[test]
    fn a_map_of_before_the_process_is_told_from_its_own() {
        let folder = std::env::temp_dir().join(format!("hprofiler-since-{}", std::process::id()));
        create_dir(&folder).unwrap();
        let (dir, path) = (File::open(&folder).unwrap(), folder.join("map"));
        write(&path, "1000 10 a.b\n").unwrap();
        let began = Target::own().began();
        let is_since = || {
            let map = Written::open(&dir, "map", geteuid().as_raw(), Form::Text);
            map.unwrap().is_since(began)
        };
        assert!(is_since());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(began - Duration::from_millis(1)).unwrap();
        assert!(!is_since());
        remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_map_is_read_once_its_turn_has_come() {
        let folder = std::env::temp_dir().join(format!("hprofiler-map-{}", std::process::id()));
        create_dir(&folder).unwrap();
        let dir = File::open(&folder).unwrap();
        let owner = geteuid().as_raw();
        let written = |content: &str, form| {
            let path = folder.join("map");
            write(&path, content).unwrap();
            let written = Written::open(&dir, "map", owner, form);
            remove_file(path).unwrap();
            written
        };
        let map = written("1000 10 a.b\n", Form::Text).unwrap();
        let refused = written("error: no memory\n", Form::Binary).unwrap();
        let nothing = written("no map\n", Form::Text).unwrap();
        assert!(written("", Form::Text).is_err());
        assert!(Written::open(&dir, "map", owner, Form::Text).is_err());
        assert_eq!(map.read().unwrap().find(0x1000)[0].0, "a.b");
        assert!(refused.read().unwrap_err().contains("no memory"));
        assert_eq!(nothing.read().unwrap_err(), "the map is empty");
        let theirs = Written::open(&dir, ".", owner + 1, Form::Text);
        assert!(theirs.is_err());
        remove_dir_all(folder).unwrap();
    }
}
