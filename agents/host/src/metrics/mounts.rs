//! Network file systems that are mounted: NFS by its mount point, Lustre by its name.

use std::fs;
use std::path::Path;

use super::host::Reread;
use super::table::{id_of, Reading, Thing};

const MOST: usize = 16;
/// Where kernels and versions of Lustre have the statistics of its clients.
const LUSTRE: [&str; 2] = ["/proc/fs/lustre/llite", "/sys/kernel/debug/lustre/llite"];

pub struct Mounts {
    /// None: no NFS was mounted at the beginning.
    nfs: Option<Reread>,
    lustre: Vec<(String, Reread)>,
}

impl Mounts {
    pub fn open() -> Self {
        let mut nfs = Reread::open("/proc/self/mountstats");
        let mounted = nfs.text().is_some_and(|text| text.lines().any(is_nfs));
        Self {
            nfs: mounted.then_some(nfs),
            lustre: LUSTRE
                .iter()
                .flat_map(|folder| clients(Path::new(folder)))
                .take(MOST)
                .collect(),
        }
    }

    pub fn read(&mut self, to: &mut Vec<Reading>) {
        if let Some(text) = self.nfs.as_mut().and_then(Reread::text) {
            of_nfs(text, to);
        }
        for (id, file) in &mut self.lustre {
            if let Some(text) = file.text() {
                of_lustre(id, text, to);
            }
        }
    }
}

fn clients(folder: &Path) -> Vec<(String, Reread)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let stats = entries.map(|entry| {
        let name = entry.file_name();
        (
            id_of(&name.to_string_lossy()),
            Reread::open(entry.path().join("stats")),
        )
    });
    stats.collect()
}

/// Whether a line of `mountstats` is of a client's mount: servers have one of `nfsd`.
fn is_nfs(line: &str) -> bool {
    let kind = line.split_once(" with fstype ").map(|(_, rest)| rest);
    kind.and_then(|rest| rest.split(' ').next())
        .is_some_and(|kind| kind == "nfs" || kind == "nfs4")
}

/// `/proc/self/mountstats`. Bytes are those that the server sent and received.
fn of_nfs(text: &str, to: &mut Vec<Reading>) {
    let mounts = text
        .split("device ")
        .filter(|mount| is_nfs(mount.lines().next().unwrap_or_default()));
    for mount in mounts.take(MOST) {
        let point = mount
            .split_once(" mounted on ")
            .and_then(|(_, rest)| rest.split_once(" with fstype "));
        let Some((point, _)) = point else {
            continue;
        };
        let id = id_of(point);
        let mut nfs = Thing::new("mount", &id, to);
        let numbers = |line: &str| -> Vec<u64> {
            line.split_ascii_whitespace()
                .map_while(|word| word.parse().ok())
                .collect()
        };
        let (mut operations, mut again, mut wait) = (0u64, 0u64, 0u64);
        let mut of_operations = false;
        for line in mount.lines() {
            let Some((name, rest)) = line.trim().split_once(':') else {
                of_operations |= line.trim() == "per-op statistics";
                continue;
            };
            match numbers(rest).as_slice() {
                [_, _, _, _, received, sent, ..] if name == "bytes" => {
                    nfs.counter("read_bytes", "bytes", *received);
                    nfs.counter("written_bytes", "bytes", *sent);
                }
                // Sent, with repeats, timeouts, bytes sent and received, ms in the queue, of the answer, and of all.
                [count, sent, _, _, _, _, _, all, ..] if of_operations => {
                    operations = operations.saturating_add(*count);
                    again = again.saturating_add(sent.saturating_sub(*count));
                    wait = wait.saturating_add(*all);
                }
                _ => {}
            }
        }
        nfs.counter("operations", "count", operations);
        nfs.counter("retransmits", "count", again);
        nfs.counter("wait_ms", "ms", wait);
    }
}

/// `stats` of a client: name, number of samples, `samples`, unit, least, most, sum.
fn of_lustre(id: &str, text: &str, to: &mut Vec<Reading>) {
    let mut lustre = Thing::new("mount", id, to);
    let mut operations = 0u64;
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, count, "samples", ..] = words.as_slice() else {
            continue;
        };
        if !matches!(*name, "read" | "write") {
            // Newer versions have these beside `read_bytes` and `write_bytes`, for their times.
            operations = operations.saturating_add(count.parse().unwrap_or(0));
        }
        let name = match *name {
            "read_bytes" => "read_bytes",
            "write_bytes" => "written_bytes",
            _ => continue,
        };
        if let Some(sum) = words.get(6).and_then(|word| word.parse().ok()) {
            lustre.counter(name, "bytes", sum);
        }
    }
    lustre.counter("operations", "count", operations);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::host::tests::told;

    #[test]
    fn nfs_by_mount_point() {
        let text = "device proc mounted on /proc with fstype proc\n\
            device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n\
            device nas:/data mounted on /mnt/my\\040data with fstype nfs4 statvers=1.1\n\
            \topts:\trw,vers=4.1\n\tage:\t99\n\
            \tbytes:\t10 20 0 0 4096 8192 1 2\n\
            \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
            \txprt:\ttcp 1 2 3 4 5 6 7 8 9 10\n\
            \tper-op statistics\n\
            \t        NULL: 1 1 0 44 24 0 0 0 0\n\
            \t        READ: 10 12 0 1 2 3 40 50 0\n\
            \t       WRITE: 5 5 0 1 2 3 4 7\n";
        let mut to = Vec::new();
        of_nfs(text, &mut to);
        assert_eq!(
            told(&to),
            [
                "read_bytes 4096",
                "written_bytes 8192",
                "operations 16",
                "retransmits 2",
                "wait_ms 57"
            ]
            .map(|one| format!("mount /mnt/my\\040data {one}"))
        );
    }

    #[test]
    fn lustre_by_name() {
        let text = "snapshot_time             1489.3 secs.nsecs\n\
            read_bytes                3 samples [bytes] 4096 8192 16384 100\n\
            write_bytes               2 samples [bytes] 1 2 3\n\
            read                      3 samples [usecs] 1 2 3 4\n\
            open                      7 samples [reqs]\n";
        let mut to = Vec::new();
        of_lustre("lfs-1", text, &mut to);
        assert_eq!(
            told(&to),
            [
                "mount lfs-1 read_bytes 16384",
                "mount lfs-1 written_bytes 3",
                "mount lfs-1 operations 12"
            ]
        );
    }
}
