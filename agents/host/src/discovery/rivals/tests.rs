use super::*;
use std::net::TcpListener;

const ID: &str = "container_e17_1700000000000_0042_01_000003";
const OTHER: &str = "container_e17_1700000000000_0042_01_000004";
/// Users.
const APPLICATION: u32 = 4001;
const STRANGER: u32 = 4242;

fn process(pid: i32, ppid: i32, uid: u32, command: &str) -> Seen {
    Seen {
        ppid,
        uid,
        user: format!("u{uid}"),
        ..Seen::of(pid, command)
    }
}

/// The pids that are believed, if all of the processes claim to be in the container: the first `by_kernel` by their
/// control groups, the others by their own claims.
fn believed(seen: &[Seen], by_kernel: usize, trusted: &TrustedFacts) -> Vec<i32> {
    let evidence = (0..seen.len()).map(|index| match index < by_kernel {
        true => Evidence::Kernel,
        false => Evidence::Own,
    });
    let claims = evidence.map(|evidence| {
        let id = ID.to_owned();
        Some(Membership { id, evidence })
    });
    let places = settle(seen, claims.collect(), trusted);
    let believed = seen
        .iter()
        .zip(places)
        .filter(|(_, place)| *place == Some(Ok(ID.to_owned())));
    believed.map(|(process, _)| process.pid).collect()
}

/// The cluster reports the application's user.
fn owned() -> TrustedFacts {
    TrustedFacts {
        owners: BTreeMap::from([(ID.to_owned(), format!("u{APPLICATION}"))]),
        manager_port: None,
    }
}

#[test]
fn users_are_told_apart_by_what_only_root_controls() {
    let java = |pid, uid| process(pid, 1, uid, "java");
    for (seen, by_kernel, want) in [
        // A single user is believed.
        (vec![java(10, 3000), java(11, 3000)], 0, vec![10, 11]),
        // Control groups take precedence over claims.
        (
            vec![java(10, 0), java(11, 0), java(12, STRANGER)],
            1,
            vec![10],
        ),
        (vec![java(10, APPLICATION), java(11, STRANGER)], 0, vec![10]),
        // Nothing distinguishes these users.
        (vec![java(10, 3000), java(11, 3001)], 0, vec![10, 11]),
    ] {
        assert_eq!(believed(&seen, by_kernel, &owned()), want);
    }
    let silent = settle(&[java(10, APPLICATION)], vec![None], &owned());
    assert_eq!(silent, [None]);
}

#[test]
fn processes_that_root_started_for_the_container_are_believed() {
    let executor =
        |uid, id: &str| process(5, 1, uid, &format!("container-executor u u 1 a {id} /dir"));
    for (first, want) in [
        (executor(0, ID), vec![6, 10]),
        (executor(STRANGER, ID), vec![5, 6, 10, 11]),
        (executor(0, OTHER), vec![5, 6, 10, 11]),
    ] {
        let seen = [
            first,
            process(6, 5, 99, "bash"),
            process(10, 6, 99, "java"),
            process(11, 1, STRANGER, "java"),
        ];
        assert_eq!(believed(&seen, 0, &TrustedFacts::default()), want);
    }
}

#[test]
fn a_helper_of_roots_own_does_not_show_whose_container_it_is() {
    let seen = [
        process(5, 1, 0, &format!("container-executor u u 1 a {ID} /dir")),
        process(6, 5, 0, &format!("docker run {ID}")),
        process(10, 1, APPLICATION, "java"),
        process(11, 1, STRANGER, "java"),
    ];
    assert_eq!(believed(&seen, 0, &owned()), [10]);
    assert_eq!(believed(&seen, 0, &TrustedFacts::default()), [5, 6, 10, 11]);
}

#[test]
fn the_managers_user_is_believed_beside_the_applications() {
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
    assert_eq!(believed(&seen, 0, &trusted), [10, 11]);
}

#[test]
fn in_a_container_that_is_not_listed_yet_users_need_a_proof() {
    let claim = |evidence| {
        let id = ID.to_owned();
        vec![Some(Membership { id, evidence })]
    };
    let by_beginning = TrustedFacts {
        owners: BTreeMap::from([(
            "container_e17_1700000000000_0042_*".to_owned(),
            format!("u{APPLICATION}"),
        )]),
        manager_port: None,
    };
    for (uid, evidence, trusted) in [
        (APPLICATION, Evidence::Unlisted, true),
        (STRANGER, Evidence::Unlisted, false),
        (STRANGER, Evidence::Own, true),
        (STRANGER, Evidence::Kernel, true),
    ] {
        let seen = [process(10, 1, uid, "java")];
        let places = settle(&seen, claim(evidence), &by_beginning);
        let believed = places == [Some(Ok(ID.to_owned()))];
        assert_eq!(believed, trusted, "{uid} {evidence:?}");
    }
}
