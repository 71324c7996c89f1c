use super::*;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver};

fn token(number: u32) -> Token {
    let unique = format!("{:08x}{number:024x}", std::process::id());
    Token::new(unique).unwrap()
}

fn listening(token: &Token) -> Receiver<Message> {
    let (sender, receiver) = channel();
    listen(token, sender, Arc::default()).unwrap();
    receiver
}

fn successor(happenings: &Receiver<Message>) -> Successor {
    match happenings.recv_timeout(Duration::from_secs(60)) {
        Ok(Message::Successor(successor)) => successor,
        _ => panic!("no successor"),
    }
}

fn ask_for(token: &Token, files: &[BorrowedFd<'_>; 2]) -> Option<UnixStream> {
    match ask(token, 7, *files) {
        Answer::Taken(connection) => Some(connection),
        _ => None,
    }
}

#[test]
fn who_does_not_know_the_token_gets_nothing() {
    let token = token(4);
    let happenings = listening(&token);
    let wrong = Token("0".repeat(DIGITS));
    for said in [
        b"".as_slice(),
        b"\n",
        b"nonsense that is much longer than any token and number could ever be, and so on\n",
        format!("{} 7\n", wrong.0).as_bytes(),
        format!("{} 7\n", token.0).as_bytes(), // without files
    ] {
        let name = SocketAddr::from_abstract_name(token.name()).unwrap();
        let mut neighbour = UnixStream::connect_addr(&name).unwrap();
        neighbour.write_all(said).unwrap();
        neighbour.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = neighbour.read_to_end(&mut answer); // it may be reset
        assert!(answer.is_empty());
    }
    let (one, other) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask_for(&token, &[one.as_fd(), other.as_fd()]).is_some());
        successor(&happenings).control.accept().unwrap();
        assert!(asking.join().unwrap());
    });
    assert!(happenings.try_recv().is_err());
}
