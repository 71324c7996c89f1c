//! Reads a JVM's reply within a time limit, and parses it for each version.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::time::Instant;

use rustix::net::sockopt::{set_socket_timeout, Timeout};

use super::MOMENT;

/// The result of loading an agent library.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<T = i32> {
    /// The library was loaded, and its entry point returned this.
    Returned(T),
    /// The JVM did not load it. Its error text.
    Refused(String),
}

/// The answer until the other side closes; only the beginning of one that has more than `most` bytes. The limit holds
/// for all pieces together.
pub(super) fn read_until(stream: &mut File, until: Instant, most: usize) -> io::Result<Vec<u8>> {
    let (mut reply, mut piece) = (Vec::new(), [0; 4096]);
    while reply.len() < most {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        set_socket_timeout(&*stream, Timeout::Recv, Some(left.max(MOMENT)))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => reply.extend(&piece[..read]),
            // The next turn checks the time.
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reply)
}

/// The reply to `load`. The first line is the attach listener's verdict. Then JDK 8 sends `N`, 9 and later `return
/// code: N`, and 21 and later an error text if the library was not loaded.
pub fn parse_reply(reply: &str) -> Option<Reply> {
    let (verdict, rest) = reply.split_once('\n').unwrap_or((reply, ""));
    let rest = rest.trim();
    let verdict: i32 = verdict.trim().parse().ok()?;
    let first = rest.lines().next().unwrap_or_default();
    let code = first
        .strip_prefix("return code: ")
        .unwrap_or(first)
        .trim()
        .parse::<i32>();
    Some(match (verdict, code) {
        // JDK 8 says no more about a library that cannot be loaded.
        (0, Ok(-1)) => Reply::Refused("the JVM cannot load it".to_owned()),
        (0, Ok(code)) => Reply::Returned(code),
        (0, Err(_)) | (_, Err(_)) if !rest.is_empty() => Reply::Refused(rest.to_owned()),
        (code, _) => Reply::Refused(format!("the JVM answered {code}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::thread::{scope, sleep};
    use std::time::Duration;

    #[test]
    fn an_answer_that_comes_in_drops_is_not_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut stream = File::from(OwnedFd::from(ours));
        scope(|scope| {
            scope.spawn(move || {
                while theirs.write_all(b"0").is_ok() {
                    sleep(Duration::from_millis(5));
                }
            });
            let begin = Instant::now();
            let read = read_until(&mut stream, begin + Duration::from_millis(200), 64 << 10);
            drop(stream);
            assert!(read.is_err() && begin.elapsed() >= Duration::from_millis(200));
        });
    }

    #[test]
    fn replies_of_all_versions() {
        for (reply, want) in [
            ("0\n0\n", Some(Reply::Returned(0))),
            (
                "0\n-1\n",
                Some(Reply::Refused("the JVM cannot load it".into())),
            ),
            ("0\n200\n", Some(Reply::Returned(200))),
            ("0\nreturn code: 100\n", Some(Reply::Returned(100))),
            (
                "0\n/x.so: cannot open shared object file\n",
                Some(Reply::Refused(
                    "/x.so: cannot open shared object file".into(),
                )),
            ),
            (
                "100\nDynamic agent loading is not enabled\n",
                Some(Reply::Refused(
                    "Dynamic agent loading is not enabled".into(),
                )),
            ),
            ("101\n", Some(Reply::Refused("the JVM answered 101".into()))),
            ("", None),
            ("hello", None),
        ] {
            assert_eq!(parse_reply(reply), want, "{reply:?}");
        }
    }
}
