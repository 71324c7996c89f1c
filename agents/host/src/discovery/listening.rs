//! Which process listens at a TCP port. `/proc` shows this without root for one's own processes.

use std::collections::{BTreeSet, HashSet};

use crate::os::proc::read_text;
use crate::os::proc::target::Target;

/// Enough for some hundred thousand connections.
const LARGEST_TABLE: u64 = 64 << 20;
const LISTENS: &str = "0A";

/// Whether the process listens at the port in its own network namespace.
pub fn at(process: &Target, port: u16) -> bool {
    let sockets: HashSet<String> = ["net/tcp", "net/tcp6"]
        .iter()
        .filter_map(|table| process.read(table, LARGEST_TABLE))
        .flat_map(|text| listeners(&text, port).collect::<Vec<_>>())
        .collect();
    let mut files = process.open_files().into_iter().flatten().flatten();
    !sockets.is_empty() && files.any(|file| sockets.contains(&file))
}

/// The users whose sockets listen at the port in the agent's network namespace.
pub fn users_at(port: u16) -> BTreeSet<u32> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let texts = tables
        .iter()
        .filter_map(|table| read_text(table, LARGEST_TABLE));
    texts
        .flat_map(|text| users(&text, port).collect::<Vec<_>>())
        .collect()
}

fn users(table: &str, port: u16) -> impl Iterator<Item = u32> + '_ {
    at_port(table, port).filter_map(|line| line.split_ascii_whitespace().nth(7)?.parse().ok())
}

/// The sockets in a table of `/proc/PID/net` that listen at the port, as `/proc/PID/fd` shows them.
pub fn listeners(table: &str, port: u16) -> impl Iterator<Item = String> + '_ {
    at_port(table, port).filter_map(|line| {
        let inode = line.split_ascii_whitespace().nth(9)?;
        Some(format!("socket:[{inode}]"))
    })
}

fn at_port(table: &str, port: u16) -> impl Iterator<Item = &str> {
    let ending = format!(":{port:04X}");
    table.lines().filter(move |line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, state) = (words.next(), words.nth(1));
        state == Some(LISTENS) && local.is_some_and(|local| local.ends_with(&ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  2001        0 4711 1 0 100
   1: 0A00004D:1F90 0B00004D:C001 01 00000000:00000000 00:00000000 00000000  2001        0 4712 1 0 100
   2: 00000000:11F9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  2001        0 4713 1 0 100
   3: torn
";

    #[test]
    fn only_what_listens_there() {
        let found = |port| listeners(TABLE, port).collect::<Vec<_>>();
        assert_eq!(found(8080), ["socket:[4711]"]);
        assert_eq!(found(0x11F9), ["socket:[4713]"]);
        assert_eq!(found(0x1F9), [] as [String; 0]);
        assert_eq!(users(TABLE, 8080).collect::<Vec<_>>(), [2001]);
    }
}
