//! `/proc/PID/maps`: which libraries a process has loaded.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// A process with very many mappings is read no further than this.
const LIMIT: u64 = 64 << 20;

/// The paths of the mapped files that `wanted` accepts, each once. None where the map is not ours to read.
pub fn libraries(map: File, wanted: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let mut reader = BufReader::new(map.take(LIMIT));
    let mut found: Vec<String> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Some(found),
            Ok(_) => {}
            Err(_) => return None,
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(file) = mapped_file(&text) {
            if wanted(file)
                && found.last().map(String::as_str) != Some(file)
                && !found.iter().any(|f| f == file)
            {
                found.push(file.to_owned());
            }
        }
    }
}

/// The path of one line, without the mark of a deleted file. Paths may hold spaces.
fn mapped_file(line: &str) -> Option<&str> {
    let path = line[line.find('/')?..].trim_end_matches('\n');
    Some(path.strip_suffix(" (deleted)").unwrap_or(path))
}

/// The last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_path_may_hold_spaces() {
        let line = "7f1-7f2 r-xp 00000000 08:01 42    /opt/my app/libjvm.so (deleted)\n";
        assert_eq!(mapped_file(line), Some("/opt/my app/libjvm.so"));
        assert_eq!(mapped_file("7f1-7f2 rw-p 00000000 00:00 0 [heap]\n"), None);
        assert_eq!(file_name("/opt/my app/libjvm.so"), "libjvm.so");
    }
}
