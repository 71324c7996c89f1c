//! Unix sockets: connecting with a time limit, and the process at the other end.

use std::time::Duration;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{self, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A connection to a listening socket. The limit holds for connecting, which could wait forever at a full queue, and for
/// each later write.
pub fn connect(address: &SocketAddrUnix, limit: Duration) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    net::connect(&socket, address)?;
    Ok(socket)
}

/// The process that listens at the other end, as a pid of this pid namespace; None: it has none here. The kernel noted
/// the process when it began to listen.
pub fn listener(socket: impl AsFd) -> Result<Option<i32>, Errno> {
    credentials(socket).map(|peer| (peer.pid > 0).then_some(peer.pid))
}

/// The user of the process at the other end, in this user namespace.
pub fn user(socket: impl AsFd) -> Result<u32, Errno> {
    credentials(socket).map(|peer| peer.uid)
}

/// rustix has this too, but cannot represent the pid 0 that the kernel may return.
fn credentials(socket: impl AsFd) -> Result<libc::ucred, Errno> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `peer`, which has that size, and any bytes are valid there.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(peer),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn of_a_pair_it_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(listener(&one), Ok(Some(std::process::id() as i32)));
        assert_eq!(user(&one), Ok(rustix::process::geteuid().as_raw()));
    }
}
