//! Caches that other hosts may have as well: the agents that run from them there are not to be seen here.

use rustix::fd::AsFd;
use rustix::fs::fstatfs;

/// A recording lasts a day at most, and what follows it far less than another one, in seconds.
const LONGEST_USE: u64 = 2 * 86_400;
/// File systems of networks, by the numbers of `statfs(2)`.
const SHARED: [u32; 14] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xfe53_4d42, // SMB 2
    0xff53_4d42, // CIFS
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x00c3_6400, // Ceph
    0x5346_414f, // AFS
    0x6b41_4653, // AFS, the kernel's own
    0x1983_0326, // BeeGFS
    0xaad7_aaea, // PanFS
    0x7375_7245, // Coda
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
];
/// Those that may be one of a network. Containers and small virtual machines have all their files on them, so in a
/// folder for temporary files they are nobody else's.
const MAY_BE_SHARED: [u32; 2] = [
    0x0102_1997, // 9P
    0x6573_5546, // FUSE
];

/// In how many seconds no other host runs agents any more from a folder that was used so many seconds ago, unless it is
/// used again; None where none does. `temporary`: it is in a folder for temporary files.
pub fn may_run(folder: impl AsFd, seconds: u64, temporary: bool) -> Option<u64> {
    seconds_left(fstatfs(folder).ok()?.f_type as u32, seconds, temporary)
}

fn seconds_left(file_system: u32, seconds: u64, temporary: bool) -> Option<u64> {
    let may_be = !temporary && MAY_BE_SHARED.contains(&file_system);
    let left = LONGEST_USE.saturating_sub(seconds);
    ((may_be || SHARED.contains(&file_system)) && left > 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_run_nothing_from_a_disk() {
        for (file_system, seconds, temporary, want) in [
            (0x6969, 0, false, Some(LONGEST_USE)),
            (0x6969, 0, true, Some(LONGEST_USE)),
            (0xff53_4d42, 3600, false, Some(LONGEST_USE - 3600)),
            (0x6573_5546, LONGEST_USE - 1, false, Some(1)),
            (0x6573_5546, 0, true, None),
            (0x0102_1997, 0, true, None),
            (0x6969, LONGEST_USE, false, None),
            (0xef53, 0, false, None),
            (0x0102_1994, 0, false, None),
        ] {
            let left = seconds_left(file_system, seconds, temporary);
            assert_eq!(left, want, "{file_system:x}");
        }
    }

    #[test]
    fn what_the_kernel_makes_is_this_hosts_own() {
        let proc = std::fs::File::open("/proc").unwrap();
        assert_eq!(may_run(proc, 0, false), None);
    }
}
