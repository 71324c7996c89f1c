//! Secrets in command lines are masked before anything leaves the host.

const HIDDEN: &str = "***";
const SEPARATORS: [char; 4] = [',', '&', ';', ' '];
/// Between a name and its value; the colon as in JSON and YAML.
const SIGNS: [char; 2] = ['=', ':'];
const QUOTES: [char; 2] = ['"', '\''];
/// Behind these a quote begins a name or a value.
const BEFORE_QUOTED: [char; 5] = ['=', ':', ',', '[', '{'];
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
/// Telling at the end of a name only: much else begins with them.
const ENDINGS: [&str; 4] = ["key", "pass", "pwd", "auth"];
/// Ends so, and is no secret's name.
const HARMLESS: [&str; 2] = ["bypass", "compass"];
/// Where shells keep what folder they are in.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// The arguments as one line of at most `limit` bytes, values that look like secrets masked.
pub fn command(arguments: &[String], limit: usize) -> String {
    cut(words(arguments).join(" "), limit)
}

/// The arguments one by one, values that look like secrets masked.
pub fn words(arguments: &[String]) -> Vec<String> {
    let mut announced = false;
    let word = |argument: &String| {
        // A password may begin like an option. What looks like one and is hidden may be one all the same.
        let follows_secret = std::mem::replace(&mut announced, announces_secret(argument));
        match follows_secret {
            true => HIDDEN.to_owned(),
            false => masked(argument),
        }
    };
    arguments.iter().map(word).collect()
}

/// The value of an environment variable, masked where it or the name looks like a secret.
pub fn variable(name: &str, value: &str) -> String {
    if FOLDERS.contains(&name) {
        return masked(value);
    }
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
        && is_secret(&format!("{argument}="))
}

/// `name=value` or `"name": "value"` with a telling name, or several of them in one argument, and the passwords of URLs.
fn masked(argument: &str) -> String {
    let argument = mask_urls(argument);
    if !argument.contains(SIGNS) || !is_secret(&argument) {
        return argument;
    }
    let mut follows_secret = false;
    pieces(&argument)
        .into_iter()
        .map(|piece| mask_assignment(piece, &mut follows_secret))
        .collect()
}

/// An argument's parts, with the separator behind each. Blanks beside a sign are none, nor is what a quoted value holds.
fn pieces(argument: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut begin, mut before) = (0, ' ');
    let mut blank = false;
    let mut quote = None;
    for (at, c) in argument.char_indices() {
        if blank && c != ' ' && !SIGNS.contains(&c) && !SIGNS.contains(&before) {
            pieces.push(&argument[begin..at]);
            begin = at;
        }
        match quote {
            Some(open) => quote = quote.filter(|_| c != open || before == '\\'),
            None if QUOTES.contains(&c) && BEFORE_QUOTED.contains(&before) => quote = Some(c),
            None if c != ' ' && SEPARATORS.contains(&c) => {
                pieces.push(&argument[begin..=at]);
                begin = at + 1;
            }
            None => {}
        }
        blank = c == ' ' && quote.is_none();
        if !blank {
            before = c;
        }
    }
    pieces.extend(Some(&argument[begin..]).filter(|last| !last.is_empty()));
    pieces
}

/// A value may itself hold a separator, so what follows one up to the next name is hidden with it.
fn mask_assignment(piece: &str, follows_secret: &mut bool) -> String {
    let name = match value_start(piece) {
        Some(end) => &piece[..end],
        None if *follows_secret && !begins_with_name(piece) => "",
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

/// Whether a piece behind a secret has a name of its own: in quotes only if a sign follows these, for what else is quoted
/// is a value, as in a list of them.
fn begins_with_name(piece: &str) -> bool {
    let piece = piece.trim_start();
    let Some(quoted) = piece.strip_prefix(QUOTES) else {
        return piece.contains('=');
    };
    let rest = quoted.split_once(QUOTES).map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.trim_start().starts_with(SIGNS))
}

/// An address ends where a blank or the next one's scheme begins; of one with several `@` the last ends the password, so
/// that too much of one with an `@` in its path is hidden, and never too little.
fn mask_urls(argument: &str) -> String {
    let mut told = String::new();
    let mut rest = argument;
    while let Some((scheme, after)) = rest.split_once("://") {
        told += scheme;
        told += "://";
        let end = address_end(after);
        told += &mask_login(&after[..end]);
        rest = &after[end..];
    }
    told + rest
}

/// Looks no farther than the next address: an argument may be megabytes of them.
fn address_end(text: &str) -> usize {
    let next = text.find("://");
    let before = &text[..next.unwrap_or(text.len())];
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    match before.find(char::is_whitespace) {
        Some(blank) => blank,
        None if next.is_some() => before.trim_end_matches(is_scheme).len(),
        None => text.len(),
    }
}

fn mask_login(address: &str) -> String {
    match (address.find(':'), address.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            format!("{}{HIDDEN}{}", &address[..=colon], &address[at..])
        }
        _ => address.to_owned(),
    }
}

/// Where the value begins whose name is telling: behind the first `=` up to which the text is a secret's name, or the
/// first `:` right behind such a name. In one pass: an argument may be megabytes of them.
fn value_start(piece: &str) -> Option<usize> {
    let mut name = String::new();
    let (mut secret, mut named) = (false, false);
    let mut begin = 0;
    for (at, c) in piece.char_indices().filter(|&(_, c)| !is_ignored(c)) {
        match c {
            '=' if secret || ends_telling(&name) => return Some(at + 1),
            ':' if (named || ends_telling(&name)) && !is_place(piece, begin, at) => {
                return Some(at + 1)
            }
            _ => {}
        }
        if !c.is_alphanumeric() {
            (named, begin) = (false, at + c.len_utf8());
        }
        name.push(c.to_ascii_lowercase());
        let told = WORDS.iter().any(|word| name.ends_with(word));
        (secret, named) = (secret || told, named || told);
    }
    None
}

/// Whether what stands before a colon is a host before its port, or a file before the next one of a class path.
fn is_place(piece: &str, begin: usize, colon: usize) -> bool {
    let (before, word, after) = (&piece[..begin], &piece[begin..colon], &piece[colon + 1..]);
    let between_paths = before.ends_with('/') && after.starts_with('/');
    before.ends_with("//") || between_paths || word.ends_with(".jar")
}

fn is_secret(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|&c| !is_ignored(c))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let ends = |(at, _): (usize, &str)| ends_telling(&name[..at]);
    name.match_indices(SIGNS).any(ends) || WORDS.iter().any(|word| name.contains(word))
}

fn ends_telling(name: &str) -> bool {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    ends(&ENDINGS) && !ends(&HARMLESS)
}

/// What may stand within any name, or around it.
fn is_ignored(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '\\' | ' ') || QUOTES.contains(&c)
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
            (vec!["http://h:1/a@b"], "http://h:***@b"),
            (vec!["http://h:1/a"], "http://h:1/a"),
            (vec!["spark://Driver@h:1"], "spark://Driver@h:1"),
            (
                vec!["-Des.hosts=http://u:p1secret@a:9200,https://v:p2secret@b:9200"],
                "-Des.hosts=http://u:***@a:9200,https://v:***@b:9200",
            ),
            (
                vec!["http://u:a@b:1/x http://h:2/y z@w"],
                "http://u:***@b:1/x http://h:2/y z@w",
            ),
            (vec!["jdbc:x://u:a/b?c#d,e@f@h/db"], "jdbc:x://u:***@h/db"),
            (vec!["-Ddb.pwd=hunter3"], "-Ddb.pwd=***"),
            (
                vec!["-DdbPass=a", "x=1,auth=u:p,y=2"],
                "-DdbPass=*** x=1,auth=***,y=2",
            ),
            (vec!["--db-pass", "hunter2", "Main"], "--db-pass *** Main"),
            (vec!["-Dmonkey=banana"], "-Dmonkey=***"),
            (
                vec!["--password", "-hunter2", "--port", "1"],
                "--password *** --port 1",
            ),
            (
                vec!["--use-token", "--password", "hunter2", "Main"],
                "--use-token *** *** Main",
            ),
            (
                vec!["TokenServer", "-cp", "secrets.jar"],
                "TokenServer -cp secrets.jar",
            ),
        ] {
            assert_eq!(shown(&given), want);
        }
    }

    #[test]
    fn values_behind_a_colon() {
        for (given, want) in [
            ("password:hunter2", "password:***"),
            ("db.password: hunter2 more", "db.password:*** ***"),
            ("Api-Key : hunter2==", "Api-Key :***"),
            (r#"{"token":"hunter2"}"#, r#"{"token":***"#),
            (r#"{"token" : "hunter2=="}"#, r#"{"token" :***"#),
            (r#"{\"token\":\"hunter2\"}"#, r#"{\"token\":***"#),
            ("{'db.pwd': 'hunter2 x=y'}", "{'db.pwd':***"),
            (
                r#"{"token":"a\" hunter2=x","b":1}"#,
                r#"{"token":***,"b":1}"#,
            ),
            (
                r#"{"tokens":["hunter2==","x, hunter2=="],"app":"orders"}"#,
                r#"{"tokens":***,***,"app":"orders"}"#,
            ),
            (
                r#"{"tokens":["hunter2","hunter2"],"app":"orders"}"#,
                r#"{"tokens":***,***,"app":"orders"}"#,
            ),
            (
                r#"--spring.application.json={"a":1,"spring.datasource.password":"hunter2"}"#,
                r#"--spring.application.json={"a":1,"spring.datasource.password":***"#,
            ),
            (
                "-javaagent:apm.jar=secret_token:hunter2",
                "-javaagent:apm.jar=secret_token:***",
            ),
            ("http://h/?token:hunter2", "http://h/?token:***"),
            ("/db/password:hunter2", "/db/password:***"),
        ] {
            assert_eq!(shown(&[given]), want);
        }
    }

    #[test]
    fn a_colon_behind_a_place_hides_nothing() {
        for given in [
            "http://token-service:8080/x",
            "kafka://basic-auth:9092",
            "/opt/lib/secrets-1.2.jar:/opt/lib/b.jar",
            "lib/token.jar:lib/b.jar",
            "/etc/secret:/etc/hadoop/conf",
            "token server: ready",
            "user:kim",
            r#"{"author":"kim","bypass":true,"a": 1}"#,
        ] {
            assert_eq!(shown(&[given]), given);
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
    fn names_that_only_look_like_a_secrets() {
        for given in [
            "-Dpwd.dir=/srv/app",
            "-Dbypass=true",
            "--proxy-bypass",
            "-Dcompass=north",
            "-Dauthor=kim",
            "-Djava.security.auth.login.config=/etc/jaas.conf",
            "-Dhadoop.security.authentication=kerberos",
            "-Dpassive=1",
        ] {
            assert_eq!(
                shown(&[given, "org.example.Main"]),
                format!("{given} org.example.Main")
            );
        }
    }

    #[test]
    fn variables() {
        for (name, value, want) in [
            ("CONTAINER_ID", "container_01", "container_01"),
            ("DB_PASSWORD", "a=b,c", "***,***"),
            ("API_KEY", "a", "***"),
            ("DB_PASS", "a", "***"),
            ("DB_PWD", "a", "***"),
            ("PWD", "/srv/app", "/srv/app"),
            ("OLDPWD", "/srv", "/srv"),
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
        assert_eq!(masked(&format!("token,{many}")), format!("token,{many}"));
        let many = ":".repeat(1 << 20);
        assert_eq!(
            masked(&format!("{many}token:hunter2")),
            format!("{many}token:***")
        );
        let blanks = " ".repeat(1 << 20);
        assert_eq!(
            masked(&format!("token{blanks}:x")),
            format!("token{blanks}:***")
        );
        let addresses = "://".repeat(1 << 20);
        assert_eq!(
            masked(&format!("{addresses}u:hunter2@h")),
            format!("{addresses}u:***@h")
        );
        assert!(begin.elapsed().as_secs() < 30);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(command(&["aé".to_owned()], 2), "a");
    }
}
