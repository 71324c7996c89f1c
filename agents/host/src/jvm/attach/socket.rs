//! Connecting to the socket that a JVM opens.

use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{statat, AtFlags, FileType, CWD};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connect as the JVM's user, whom the JVM asks the kernel about.
pub fn connect(path: &str, uid: u32, limit: Duration) -> Result<OwnedFd, Errno> {
    look(path, uid)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Also bounds connecting itself, which would wait for ever at a full queue.
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Whether there is a socket, and the JVM's user's.
pub fn look(path: &str, uid: u32) -> Result<(), Errno> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(Errno::NOTSOCK);
    }
    match stat.st_uid == uid {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}
