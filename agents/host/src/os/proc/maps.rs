//! `/proc/PID/maps`: the files that a process maps.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

/// No more of the map is read.
const LIMIT: u64 = 64 << 20;
/// No more files are returned.
const MOST_FILES: usize = 1000;

/// A file that a process maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// Without the mark of a deleted file. Empty if no file is mapped; in brackets for a special mapping.
    pub path: String,
    /// The device of its file system, as the kernel writes it here. On some file systems (overlayfs, btrfs) `stat`
    /// shows another.
    pub device: String,
    pub inode: u64,
}

/// A range of addresses that the process maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<u64>,
    /// As the kernel writes them: `rw-p`.
    pub permissions: [u8; 4],
    /// Where in the file it begins.
    pub offset: u64,
    pub file: Mapped,
}

impl Mapping {
    pub fn is_code(&self) -> bool {
        self.permissions.contains(&b'x')
    }

    pub fn is_anonymous(&self) -> bool {
        self.file.path.is_empty()
    }
}

/// All mappings, in the order of their addresses. None: the agent may not read the map.
pub fn mappings(map: impl Read) -> Option<Vec<Mapping>> {
    let mut all = Vec::new();
    visit(map, |mapping| {
        all.push(mapping);
        true
    })?;
    Some(all)
}

/// The files of the mappings that `wanted` accepts, each once. None: the agent may not read the map.
pub fn files(map: impl Read, wanted: impl Fn(&Mapping) -> bool) -> Option<Vec<Mapped>> {
    let mut found: Vec<Mapped> = Vec::new();
    visit(map, |mapping| {
        if mapping.file.path.starts_with('/') && wanted(&mapping) && !found.contains(&mapping.file)
        {
            found.push(mapping.file);
        }
        found.len() < MOST_FILES
    })?;
    Some(found)
}

/// Call `more` with each mapping until it returns false. None: the map cannot be read.
fn visit(map: impl Read, mut more: impl FnMut(Mapping) -> bool) -> Option<()> {
    for line in BufReader::new(map.take(LIMIT)).split(b'\n') {
        if let Some(mapping) = mapping(&String::from_utf8_lossy(&line.ok()?)) {
            if !more(mapping) {
                break;
            }
        }
    }
    Some(())
}

/// Paths may contain spaces. None: it is not the first line of a mapping.
pub fn mapping(line: &str) -> Option<Mapping> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let permissions = words.next()?.as_bytes().try_into().ok()?;
    let offset = number(words.next()?)?;
    let device = words.next()?.to_owned();
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    Some(Mapping {
        range: number(from)?..number(to)?,
        permissions,
        offset,
        file: Mapped {
            path: without_mark(path).to_owned(),
            device,
            inode,
        },
    })
}

/// A path without the kernel's mark of a deleted file.
pub fn without_mark(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_path_may_hold_spaces() {
        let line = "7f1-7f2 r-xp 00000000 08:01 42    /opt/my app/libjvm.so (deleted)";
        let mapped = mapping(line).unwrap().file;
        assert_eq!(
            (mapped.path.as_str(), mapped.device.as_str(), mapped.inode),
            ("/opt/my app/libjvm.so", "08:01", 42)
        );
        assert_eq!(file_name("/opt/my app/libjvm.so"), "libjvm.so");
    }

    #[test]
    fn mappings_have_the_place_in_their_file() {
        let map = "1000-2000 r-xp 00003000 08:01 7                  /my lib/a.so\n2000-3000 rw-p 0 00:00 0 \n\
                   7000-8000 r-xp 00000000 00:00 0                  [vdso]\n";
        let mappings = mappings(map.as_bytes()).unwrap();
        let first = &mappings[0];
        assert_eq!(
            (first.range.clone(), first.is_code(), first.offset),
            (0x1000..0x2000, true, 0x3000)
        );
        assert_eq!(
            (&*first.file.device, first.file.inode, mappings[1].is_code()),
            ("08:01", 7, false)
        );
        let paths: Vec<&str> = mappings.iter().map(|mapping| &*mapping.file.path).collect();
        assert_eq!(paths, ["/my lib/a.so", "", "[vdso]"]);
    }

    #[test]
    fn what_is_mapped_at_an_address() {
        let map =
            "1000-2000 r--p 0 08:01 1 /a\n2000-3000 r--p 0 fd:10 2 /b\n3000-4000 rw-p 0 00:00 0\n\
                   5000-6000 rw-p 0 00:00 0 [heap]\n";
        let at = |address| {
            let found = files(map.as_bytes(), |mapping| mapping.range.contains(&address));
            found.unwrap().pop().map(|file| (file.path, file.inode))
        };
        assert_eq!(at(0x2000), Some(("/b".to_owned(), 2)));
        assert_eq!(at(0x1fff), Some(("/a".to_owned(), 1)));
        assert_eq!((at(0x3000), at(0x5000), at(0xfff)), (None, None, None));
    }

    #[test]
    fn whose_code_may_be_run() {
        let map = "1-2 r-xp 0 08:01 1 /lib/a.so\n2-3 r--p 0 08:01 1 /lib/a.so\n3-4 rw-s 0 08:01 2 /data\n\
                   4-5 r-xp 0 00:00 0 [vdso]\n";
        let code = files(map.as_bytes(), Mapping::is_code);
        let paths = code.unwrap().into_iter();
        assert_eq!(
            paths.map(|file| file.path).collect::<Vec<_>>(),
            ["/lib/a.so"]
        );
    }
}
