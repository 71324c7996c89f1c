//! A thread in the namespaces of a JVM: it sees the JVM's files, as the JVM's user.
//!
//! Such a thread does everything that the agent does in folders that another user may write to (`/tmp`). Whatever traps
//! that user sets there, the thread can do no more than the user could. But the thread does not belong to that user,
//! who could otherwise signal it and end or stop the whole agent.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{fstat, stat, OFlags};
use rustix::io::Errno;
use rustix::process::{chroot, fchdir, getegid, geteuid, getgid, Gid, Uid};
use rustix::thread::{
    move_into_link_name_space, set_capabilities, set_capabilities_secure_bits, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid, unshare_unsafe, CapabilitiesSecureBits, CapabilitySet,
    CapabilitySets, LinkNameSpaceType, UnshareFlags,
};

use crate::os::audit;
use crate::os::files::{enter_folder, file_id};
use crate::os::proc::named::Named;
use crate::os::proc::target::Target;
use crate::os::proc::users::Users;
use crate::wire::outcome::{Code, Failure};

/// What the thread that called `enter` sees, until that thread ends.
pub struct Namespaces {
    /// The prefix of the JVM's absolute paths. Empty: the thread sees the same.
    prefix: String,
    /// Also keeps the descriptor in the prefix open.
    pub named: Named,
    pub cwd: Option<OwnedFd>,
    /// Its path, as far as it is known from outside.
    pub cwd_path: Option<String>,
    pub uid: u32,
}

impl Namespaces {
    /// Let the calling thread see and act as the JVM does. The thread must not be used for anything else afterwards.
    pub fn enter(target: &Target) -> Result<Self, Failure> {
        audit::about(target.pid);
        let status = &target.status;
        let own = geteuid().as_raw();
        if own != 0 && own != status.uid {
            let users = Users::read();
            return Err(Failure::new(
                format!(
                    "process {} belongs to user {} and the agent is user {}: only root can attach to it and read its files",
                    target.pid,
                    users.name(status.uid),
                    users.name(own)
                ),
                "connect as the process's user, or use --become sudo",
            )
            .coded(Code::NotPermitted));
        }
        let cannot = |what: &str, error: Errno| {
            Failure::new(
                format!("{what} of process {}: {error}", target.pid),
                "connect as root, or use --become sudo",
            )
            .coded(Code::NotPermitted)
        };
        let folder = OFlags::PATH | OFlags::DIRECTORY;
        let root = target
            .open_link("root", folder)
            .map_err(|e| cannot("cannot open the root directory", e))?;
        let cwd = target.open_link("cwd", folder).ok();
        let cwd_path = target.read_link("cwd");
        let named = Named::new(root, cwd_path.clone());
        let root = &*named.root;
        let mut prefix = String::new();
        if own == 0 {
            match enter_mounts(target, root) {
                // Root in a container may not enter namespaces, but can reach a JVM of the same user.
                Err(Errno::PERM) if own == status.uid => {
                    prefix = format!("/proc/self/fd/{}", root.as_raw_fd());
                }
                entered => entered.map_err(|e| cannot("cannot enter the mount namespace", e))?,
            }
            become_user(target).map_err(|e| cannot("cannot take the user and groups", e))?;
        } else if !sees_same_files(target, root) {
            prefix = format!("/proc/self/fd/{}", root.as_raw_fd());
        }
        Ok(Self {
            prefix,
            named,
            cwd,
            cwd_path,
            uid: status.uid,
        })
    }

    /// Let the calling thread act as another user in this host's own files. Only root can.
    pub fn of_user(uid: u32, gid: u32) -> Result<Self, Failure> {
        let cannot = |error: Errno| {
            Failure::plain(format!("cannot act as user {uid}: {error}")).coded(Code::NotPermitted)
        };
        let namespaces = Self {
            prefix: String::new(),
            named: Named::new(enter_folder("/").map_err(cannot)?, None),
            cwd: None,
            cwd_path: None,
            uid,
        };
        if geteuid().as_raw() == 0 {
            take_ids(uid, gid, &[]).map_err(cannot)?;
        }
        Ok(namespaces)
    }

    /// The calling thread's path for the JVM's absolute `path`.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

/// Leave the calling thread no more rights than the process's user has. Err: the agent cannot become that user.
pub fn become_user_of(target: &Target) -> Result<(), Errno> {
    // A set-user-ID program has other rights than the user who chose its arguments.
    if !target.status.one_user {
        return Err(Errno::PERM);
    }
    match geteuid().as_raw() {
        0 => become_user(target),
        _ => Ok(()),
    }
}

fn sees_same_files(target: &Target, root: &OwnedFd) -> bool {
    let same_root = || Some(file_id(&fstat(root).ok()?) == file_id(&stat("/").ok()?));
    in_same_mounts(target).unwrap_or(false) && same_root().unwrap_or(false)
}

fn in_same_mounts(target: &Target) -> Result<bool, Errno> {
    let theirs = fstat(target.open_link("ns/mnt", OFlags::RDONLY)?)?;
    Ok(file_id(&theirs) == file_id(&stat("/proc/self/ns/mnt")?))
}

/// The thread keeps the namespace alive, so that files can be read after the JVM's end.
fn enter_mounts(target: &Target, root: &OwnedFd) -> Result<(), Errno> {
    if sees_same_files(target, root) {
        return Ok(());
    }
    let namespace = if in_same_mounts(target)? {
        None
    } else {
        Some(target.open_link("ns/mnt", OFlags::RDONLY)?)
    };
    // SAFETY: only CLONE_FS is unshared, so no descriptor table is split; it gives this thread its own root
    // and working directory, which setns asks for and the other threads must not notice.
    unsafe { unshare_unsafe(UnshareFlags::FS) }?;
    if let Some(namespace) = namespace {
        move_into_link_name_space(
            rustix::fd::AsFd::as_fd(&namespace),
            Some(LinkNameSpaceType::Mount),
        )?;
    }
    // A JVM in a chroot sees less than its namespace holds.
    fchdir(root)?;
    chroot(".")
}

fn become_user(target: &Target) -> Result<(), Errno> {
    let status = &target.status;
    take_ids(status.uid, status.gid, &status.groups)
}

/// Uses the kernel's own calls, which change one thread. The C library's would change all threads, and the agent could
/// not act for several users at a time.
///
/// Only the effective ids change, and with them the ids for files: they decide about files, signals to the JVM, and
/// what the JVM learns about who connects. The real and saved ids stay root's: they decide who may signal, trace or
/// limit the thread, and so the whole agent.
fn take_ids(uid: u32, gid: u32, groups: &[u32]) -> Result<(), Errno> {
    let groups: Vec<Gid> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
    match set_thread_groups(&groups) {
        // Root in a container may not be allowed to change ids, and need not.
        Err(Errno::PERM) if (geteuid().as_raw(), getegid().as_raw()) == (uid, gid) => {}
        set => {
            set?;
            // No program is run by this thread. If one were, its real id of root would give it root's capabilities.
            // Root in a container may not be allowed to prevent that.
            let _ = set_capabilities_secure_bits(CapabilitiesSecureBits::NO_ROOT);
            let own = getgid();
            set_thread_res_gid(own, Gid::from_raw(gid), own)?;
            set_thread_res_uid(Uid::ROOT, Uid::from_raw(uid), Uid::ROOT)?;
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::could_make_files;
    use crate::os::files::tests::Folder;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    const OTHER: u32 = 12345;

    fn as_other<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let as_user = || {
            Namespaces::of_user(OTHER, OTHER).unwrap();
            work()
        };
        thread::spawn(as_user).join().unwrap()
    }

    #[test]
    fn it_has_the_users_rights_and_is_not_the_users() {
        if geteuid().as_raw() != 0 {
            return; // nobody else may become another user
        }
        let folder = Folder::new();
        std::fs::set_permissions(&*folder, PermissionsExt::from_mode(0o755)).unwrap();
        let path = folder.to_str().unwrap().to_owned();
        let roots = path.clone();
        assert_eq!(
            as_other(move || could_make_files(&roots)),
            Err(Errno::ACCESS)
        );
        std::os::unix::fs::chown(&*folder, Some(OTHER), None).unwrap();
        assert_eq!(as_other(move || could_make_files(&path)), Ok(()));
        let status = as_other(|| std::fs::read_to_string("/proc/thread-self/status").unwrap());
        let ids: Vec<&str> = status
            .lines()
            .filter(|line| line.starts_with("Uid:"))
            .collect();
        assert_eq!(ids, ["Uid:\t0\t12345\t0\t12345"]);
    }
}
