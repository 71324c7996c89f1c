//! `/proc/PID/maps`: the files that a process maps.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

/// No more of the map is read.
const LIMIT: u64 = 64 << 20;
/// No more files are returned.
const MOST_FILES: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
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
    pub is_code: bool,
    /// Where in the file it begins.
    pub offset: u64,
    pub device: String,
    pub inode: u64,
    /// Empty if it is of no file; in brackets if it is a special one.
    pub path: String,
}

/// All mappings, in the order of their addresses. None: the agent may not read the map.
pub fn mappings(map: impl Read) -> Option<Vec<Mapping>> {
    let mut bytes = Vec::new();
    map.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(
        String::from_utf8_lossy(&bytes)
            .lines()
            .filter_map(mapping)
            .collect(),
    )
}

fn mapping(line: &str) -> Option<Mapping> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let offset = number(words.next()?)?;
    let device = words.next()?.to_owned();
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    Some(Mapping {
        range: number(from)?..number(to)?,
        is_code,
        offset,
        device,
        inode,
        path: path.to_owned(),
    })
}

/// The mapped files whose paths `wanted` accepts, each once. None: the agent may not read the map.
pub fn files(map: impl Read, wanted: impl Fn(&str) -> bool) -> Option<Vec<Mapped>> {
    chosen(map, |_, file| wanted(&file.path))
}

/// The files whose code may run.
pub fn programs(map: impl Read) -> Option<Vec<Mapped>> {
    let rights = |line: &str| line.split_ascii_whitespace().nth(1).map(str::to_owned);
    chosen(map, |line, _| {
        rights(line).is_some_and(|rights| rights.contains('x'))
    })
}

fn chosen(map: impl Read, wanted: impl Fn(&str, &Mapped) -> bool) -> Option<Vec<Mapped>> {
    let mut reader = BufReader::new(map.take(LIMIT));
    let mut found: Vec<Mapped> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Some(found),
            Ok(_) => {}
            Err(_) => return None,
        }
        let text = String::from_utf8_lossy(&line);
        let file = mapped_file(&text).filter(|file| wanted(&text, file));
        found.extend(file.filter(|file| !found.contains(file)));
        if found.len() == MOST_FILES {
            return Some(found);
        }
    }
}

pub fn file_at(map: impl Read, address: u64) -> Option<Mapped> {
    let at = |line: &str, _: &Mapped| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = range.and_then(|(from, to)| Some(number(from)?..number(to)?));
        range.is_some_and(|range| range.contains(&address))
    };
    chosen(map, at)?.pop()
}

/// The path is without the mark of a deleted file. Paths may contain spaces.
fn mapped_file(line: &str) -> Option<Mapped> {
    let (numbers, path) = line.split_at(line.find('/')?);
    let path = path.trim_end_matches('\n');
    let mut numbers = numbers.split_ascii_whitespace().skip(3);
    Some(Mapped {
        path: path.strip_suffix(" (deleted)").unwrap_or(path).to_owned(),
        device: numbers.next()?.to_owned(),
        inode: numbers.next()?.parse().ok()?,
    })
}

pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_path_may_hold_spaces() {
        let line = "7f1-7f2 r-xp 00000000 08:01 42    /opt/my app/libjvm.so (deleted)\n";
        let mapped = mapped_file(line).unwrap();
        assert_eq!(
            (mapped.path.as_str(), mapped.device.as_str(), mapped.inode),
            ("/opt/my app/libjvm.so", "08:01", 42)
        );
        assert_eq!(mapped_file("7f1-7f2 rw-p 00000000 00:00 0 [heap]\n"), None);
        assert_eq!(file_name("/opt/my app/libjvm.so"), "libjvm.so");
    }

    #[test]
    fn mappings_have_the_place_in_their_file() {
        let map = "1000-2000 r-xp 00003000 08:01 7                  /my lib/a.so\n2000-3000 rw-p 0 00:00 0 \n\
                   7000-8000 r-xp 00000000 00:00 0                  [vdso]\n";
        let mappings = mappings(map.as_bytes()).unwrap();
        let first = &mappings[0];
        assert_eq!(
            (first.range.clone(), first.is_code, first.offset),
            (0x1000..0x2000, true, 0x3000)
        );
        assert_eq!(
            (&*first.device, first.inode, mappings[1].is_code),
            ("08:01", 7, false)
        );
        let paths: Vec<&str> = mappings.iter().map(|mapping| &*mapping.path).collect();
        assert_eq!(paths, ["/my lib/a.so", "", "[vdso]"]);
    }

    #[test]
    fn what_is_mapped_at_an_address() {
        let map =
            "1000-2000 r--p 0 08:01 1 /a\n2000-3000 r--p 0 fd:10 2 /b\n3000-4000 rw-p 0 00:00 0\n";
        let at = |address| file_at(map.as_bytes(), address).map(|file| (file.path, file.inode));
        assert_eq!(at(0x2000), Some(("/b".to_owned(), 2)));
        assert_eq!(at(0x1fff), Some(("/a".to_owned(), 1)));
        assert_eq!((at(0x3000), at(0xfff)), (None, None));
    }

    #[test]
    fn whose_code_may_be_run() {
        let map = "1-2 r-xp 0 08:01 1 /lib/a.so\n2-3 r--p 0 08:01 1 /lib/a.so\n3-4 rw-s 0 08:01 2 /data\n\
                   4-5 r-xp 0 00:00 0 [vdso]\n";
        let paths = programs(map.as_bytes()).unwrap().into_iter();
        assert_eq!(
            paths.map(|file| file.path).collect::<Vec<_>>(),
            ["/lib/a.so"]
        );
    }
}
