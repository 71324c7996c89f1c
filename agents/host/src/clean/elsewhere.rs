//! Caches that other hosts may have as well: the agents that run from them there are not to be seen here.

use rustix::fd::AsFd;
use rustix::fs::fstatfs;

/// A recording lasts a day at most, and what follows it far less than another one, in seconds.
const LONGEST_USE: u64 = 2 * 86_400;
/// File systems of networks, and FUSE, which may be one, by the numbers of `statfs(2)`.
const SHARED: [u32; 16] = [
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
    0x0102_1997, // 9P
    0x6573_5546, // FUSE
];

/// Why other hosts may run agents from a folder that was used so many seconds ago; None where they cannot.
pub fn may_run(folder: impl AsFd, seconds: u64) -> Option<String> {
    let hours = hours_left(fstatfs(folder).ok()?.f_type as u32, seconds)?;
    Some(format!(
        "its file system may be other hosts' too, and agents run from it there: unless it is used it is left over in {hours} h"
    ))
}

fn hours_left(file_system: u32, seconds: u64) -> Option<u64> {
    let left = LONGEST_USE.saturating_sub(seconds).div_ceil(3600);
    (SHARED.contains(&file_system) && left > 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_run_nothing_from_a_disk() {
        for (file_system, seconds, want) in [
            (0x6969, 0, Some(48)),
            (0xff53_4d42, 3601, Some(47)),
            (0x6573_5546, LONGEST_USE - 1, Some(1)),
            (0x6969, LONGEST_USE, None),
            (0xef53, 0, None),
            (0x0102_1994, 0, None),
        ] {
            assert_eq!(hours_left(file_system, seconds), want, "{file_system:x}");
        }
    }

    #[test]
    fn what_the_kernel_makes_is_this_hosts_own() {
        assert_eq!(may_run(std::fs::File::open("/proc").unwrap(), 0), None);
    }
}
