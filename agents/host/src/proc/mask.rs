//! Secrets in command lines are masked before anything leaves the host.

const HIDDEN: &str = "***";
const SEPARATORS: [char; 4] = [',', '&', ';', ' '];
const WORDS: [&str; 8] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
];
const KEY: &str = "key=";

/// The arguments as one line of at most `limit` bytes, values that look like secrets masked.
pub fn command(arguments: &[String], limit: usize) -> String {
    cut(words(arguments).join(" "), limit)
}

/// The arguments one by one, values that look like secrets masked.
pub fn words(arguments: &[String]) -> Vec<String> {
    let mut follows_secret = false;
    let word = |argument: &String| {
        if std::mem::take(&mut follows_secret) && !argument.starts_with('-') {
            return HIDDEN.to_owned();
        }
        follows_secret = announces_secret(argument);
        masked(argument)
    };
    arguments.iter().map(word).collect()
}

/// The value of an environment variable, masked where it or the name looks like a secret.
pub fn variable(name: &str, value: &str) -> String {
    let assignment = masked(&format!("{name}={value}"));
    let shown = assignment.split_once('=');
    shown.map_or(HIDDEN, |(_, value)| value).to_owned()
}

/// Whether the next argument is a secret. The JVM's own options hold their values themselves.
fn announces_secret(argument: &str) -> bool {
    let of_jvm = argument.starts_with("-D") || argument.starts_with("-X");
    argument.starts_with('-')
        && !of_jvm
        && !argument.contains(['=', ':', '/'])
        && is_secret(argument)
}

/// `name=value` with a telling name, or several of them in one argument, and the password of a URL.
fn masked(argument: &str) -> String {
    let argument = mask_url(argument);
    if !is_secret(&argument) || !argument.contains('=') {
        return argument;
    }
    let mut follows_secret = false;
    let pieces = argument.split_inclusive(SEPARATORS);
    pieces
        .map(|piece| mask_assignment(piece, &mut follows_secret))
        .collect()
}

/// A value may itself hold a separator, so what follows one up to the next name is hidden with it.
fn mask_assignment(piece: &str, follows_secret: &mut bool) -> String {
    let name = match value_start(piece) {
        Some(end) => &piece[..end],
        None if *follows_secret && !piece.contains('=') => "",
        None => {
            *follows_secret = false;
            return piece.to_owned();
        }
    };
    *follows_secret = true;
    let separator = if piece.ends_with(SEPARATORS) {
        &piece[piece.len() - 1..]
    } else {
        ""
    };
    format!("{name}{HIDDEN}{separator}")
}

fn mask_url(argument: &str) -> String {
    let Some(start) = argument.find("://").map(|at| at + 3) else {
        return argument.to_owned();
    };
    let authority = argument[start..]
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    match (authority.find(':'), authority.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            format!(
                "{}{HIDDEN}{}",
                &argument[..start + colon + 1],
                &argument[start + at..]
            )
        }
        _ => argument.to_owned(),
    }
}

/// Where the value begins whose name is telling: behind the first `=` up to which the text is a secret's name. In one
/// pass: an argument may be megabytes of `=`.
fn value_start(piece: &str) -> Option<usize> {
    let mut name = String::new();
    let mut secret = false;
    let mut counted = piece.char_indices().filter(|&(_, c)| !is_ignored(c));
    counted.find_map(|(at, c)| {
        name.push(c.to_ascii_lowercase());
        secret |= name.ends_with(KEY) || WORDS.iter().any(|word| name.ends_with(word));
        (secret && c == '=').then_some(at + 1)
    })
}

fn is_secret(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|&c| !is_ignored(c))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    name.contains(KEY) || WORDS.iter().any(|word| name.contains(word))
}

/// What may stand within any name.
fn is_ignored(c: char) -> bool {
    matches!(c, '-' | '_' | '.')
}

fn cut(mut line: String, limit: usize) -> String {
    let mut end = line.len().min(limit);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        command(&arguments, 4096)
    }

    #[test]
    fn values_that_look_like_secrets() {
        for (given, want) in [
            (
                vec!["-Dhdfs.password=x=y", "Main"],
                "-Dhdfs.password=*** Main",
            ),
            (
                vec!["--password", "hunter2", "--port", "1"],
                "--password *** --port 1",
            ),
            (vec!["-Dfs.s3a.secret.key=abc"], "-Dfs.s3a.secret.key=***"),
            (vec!["-Dapi_key=abc"], "-Dapi_key=***"),
            (
                vec!["user=a,password=b,port=1"],
                "user=a,password=***,port=1",
            ),
            (vec!["password=a,b;c=d"], "password=***,***;c=d"),
            (vec!["jdbc:x://u:pw@h:1/db"], "jdbc:x://u:***@h:1/db"),
            (vec!["http://h:1/a@b"], "http://h:1/a@b"),
            (vec!["-Dmonkey=banana"], "-Dmonkey=***"),
            (
                vec!["TokenServer", "-cp", "secrets.jar"],
                "TokenServer -cp secrets.jar",
            ),
        ] {
            assert_eq!(shown(&given), want);
        }
    }

    #[test]
    fn what_follows_an_option_of_the_jvm_is_no_secret() {
        for given in [
            vec!["-javaagent:/opt/token-agent.jar", "org.example.Main"],
            vec!["-Dtoken", "org.example.Main"],
            vec!["-XX:+UseSecret", "org.example.Main"],
        ] {
            assert_eq!(shown(&given), given.join(" "));
        }
    }

    #[test]
    fn variables() {
        for (name, value, want) in [
            ("CONTAINER_ID", "container_01", "container_01"),
            ("DB_PASSWORD", "a=b,c", "***,***"),
            ("API_KEY", "a", "***"),
            ("URL", "http://u:pw@h/", "http://u:***@h/"),
            ("OPTIONS", "-Dx.token=a -Dy=b", "-Dx.token=*** -Dy=b"),
            ("EMPTY", "", ""),
        ] {
            assert_eq!(variable(name, value), want, "{name}");
        }
    }

    #[test]
    fn a_long_argument_takes_no_longer_than_it_is() {
        let many = "=".repeat(1 << 20);
        let begin = std::time::Instant::now();
        assert_eq!(
            masked(&format!("{many}token=hunter2")),
            format!("{many}token=***")
        );
        assert_eq!(masked(&format!("token {many}")), format!("token {many}"));
        assert!(begin.elapsed().as_secs() < 30);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(command(&["aé".to_owned()], 2), "a");
    }
}
