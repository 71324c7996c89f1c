use super::*;
use crate::jvm::command_line;
use std::net::TcpListener;

const ID: &str = "container_e17_1700000000000_0042_01_000003";
const OTHER: &str = "container_e17_1700000000000_0042_01_000004";
const APPLICATION: u32 = 4001;
const STRANGER: u32 = 4242;

fn process(pid: i32, ppid: i32, uid: u32, command: &str) -> Seen {
    let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
    Seen {
        pid,
        namespace_pid: pid,
        ppid,
        start_time: 1,
        uid,
        user: format!("u{uid}"),
        program: command[0].clone(),
        launch: command_line::parse(&command, |_| None),
        command,
        jvm: None,
    }
}

/// The pids whose claim to be in the container is believed.
fn believed(seen: &[Seen], words: &[Option<Evidence>], trusted: &TrustedFacts) -> Vec<i32> {
    let membership = |evidence: &Option<Evidence>| {
        evidence.map(|evidence| Membership {
            id: ID.to_owned(),
            evidence,
        })
    };
    let places = settle(seen, words.iter().map(membership).collect(), trusted);
    let believed = seen.iter().zip(places);
    believed
        .filter(|(_, place)| *place == Some(Ok(ID.to_owned())))
        .map(|(process, _)| process.pid)
        .collect()
}

fn owned() -> TrustedFacts {
    TrustedFacts {
        owners: BTreeMap::from([(ID.to_owned(), format!("u{APPLICATION}"))]),
        manager_port: None,
    }
}

#[test]
fn where_one_user_speaks_he_is_believed() {
    let seen = [process(10, 1, 3000, "java"), process(11, 1, 3000, "java")];
    let words = [Some(Evidence::Own); 2];
    assert_eq!(believed(&seen, &words, &owned()), [10, 11]);
}

#[test]
fn the_kernels_word_goes_before_any_other() {
    let seen = [
        process(10, 1, 0, "java"),
        process(11, 1, 0, "java"),
        process(12, 1, STRANGER, "java"),
    ];
    let words = [
        Some(Evidence::Kernel),
        Some(Evidence::Own),
        Some(Evidence::Own),
    ];
    assert_eq!(believed(&seen, &words, &TrustedFacts::default()), [10]);
}

#[test]
fn the_applications_user_is_believed() {
    let seen = [
        process(10, 1, APPLICATION, "java"),
        process(11, 1, STRANGER, "java"),
    ];
    assert_eq!(believed(&seen, &[Some(Evidence::Own); 2], &owned()), [10]);
}

#[test]
fn whoever_root_starts_for_it_is_believed() {
    let executor =
        |uid, id: &str| process(5, 1, uid, &format!("container-executor u u 1 a {id} /dir"));
    let rest = || {
        [
            process(6, 5, 99, "bash"),
            process(10, 6, 99, "java"),
            process(11, 1, STRANGER, "java"),
        ]
    };
    let words = [Some(Evidence::Own); 4];
    for (first, want) in [
        (executor(0, ID), vec![6, 10]),
        (executor(STRANGER, ID), vec![5, 6, 10, 11]),
        (executor(0, OTHER), vec![5, 6, 10, 11]),
    ] {
        let seen: Vec<Seen> = std::iter::once(first).chain(rest()).collect();
        assert_eq!(believed(&seen, &words, &TrustedFacts::default()), want);
    }
}

#[test]
fn roots_own_helper_does_not_tell_whose_it_is() {
    let seen = [
        process(5, 1, 0, &format!("container-executor u u 1 a {ID} /dir")),
        process(6, 5, 0, &format!("docker run {ID}")),
        process(10, 1, APPLICATION, "java"),
        process(11, 1, STRANGER, "java"),
    ];
    let words = [Some(Evidence::Own); 4];
    assert_eq!(believed(&seen, &words, &owned()), [10]);
    assert_eq!(
        believed(&seen, &words, &TrustedFacts::default()),
        [5, 6, 10, 11]
    );
}

#[test]
fn the_managers_user_is_believed_and_the_applications_beside_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let manager = rustix::process::geteuid().as_raw();
    let seen = [
        process(10, 1, manager, "java"),
        process(11, 1, APPLICATION, "tail"),
        process(12, 1, STRANGER, "java"),
    ];
    let trusted = TrustedFacts {
        manager_port: Some(listener.local_addr().unwrap().port()),
        ..owned()
    };
    assert_eq!(
        believed(&seen, &[Some(Evidence::Own); 3], &trusted),
        [10, 11]
    );
}

#[test]
fn where_nothing_tells_users_apart_all_are_believed() {
    let seen = [process(10, 1, 3000, "java"), process(11, 1, 3001, "java")];
    let words = [Some(Evidence::Own); 2];
    assert_eq!(believed(&seen, &words, &owned()), [10, 11]);
}

#[test]
fn who_says_nothing_is_nowhere() {
    let seen = [
        process(10, 1, APPLICATION, "java"),
        process(11, 1, 1, "java"),
    ];
    let places = settle(&seen, vec![None, None], &owned());
    assert_eq!(places, [None, None]);
}
