//! Secrets in command lines are masked before anything leaves the host.

const HIDDEN: &str = "***";
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// Between a name and its value. The colon is for JSON and YAML.
const SIGNS: [char; 2] = ['=', ':'];
/// Parts of the names of secrets. One of `-_.` may be between both.
const WORDS: [(&str, &str); 8] = [
    ("pass", "word"),
    ("pass", "wd"),
    ("pass", "phrase"),
    ("secret", ""),
    ("token", ""),
    ("credential", ""),
    ("api", "key"),
    ("access", "key"),
];
/// Ends of the names of secrets. Many other words begin with these.
const ENDINGS: [&str; 4] = ["key", "pass", "pwd", "auth"];
const HARMLESS: [&str; 2] = ["bypass", "compass"];
/// Shells keep folders in these.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// The arguments as one line of at most `limit` bytes, values that look like secrets masked.
pub fn command(arguments: &[String], limit: usize) -> String {
    cut(words(arguments).join(" "), limit)
}

/// The arguments one by one, values that look like secrets masked.
pub fn words(arguments: &[String]) -> Vec<String> {
    let mut announced = false;
    let word = |argument: &String| {
        // A password may look like an option. If it is hidden, the next argument may still be a password.
        let follows_secret = std::mem::replace(&mut announced, announces_secret(argument));
        match follows_secret {
            true => HIDDEN.to_owned(),
            false => masked(argument),
        }
    };
    arguments.iter().map(word).collect()
}

/// The value of an environment variable, masked if it or the name looks like a secret.
pub fn variable(name: &str, value: &str) -> String {
    if FOLDERS.contains(&name) {
        return masked(value);
    }
    let assignment = masked(&format!("{name}={value}"));
    let shown = assignment.split_once('=');
    shown.map_or(HIDDEN, |(_, value)| value).to_owned()
}

/// Whether the next argument is a secret. The JVM's own options contain their values.
fn announces_secret(argument: &str) -> bool {
    let of_jvm = argument.starts_with("-D") || argument.starts_with("-X");
    argument.starts_with('-')
        && !of_jvm
        && !argument.contains(['=', ':', '/'])
        && secret(&format!("{argument}=")).is_some()
}

/// Hides what follows `name=` or `"name":` with a secret's name, up to the next option or to the end, because the value
/// may contain any separator. Also hides the passwords of URLs.
fn masked(argument: &str) -> String {
    if !argument.contains(['=', ':']) {
        return argument.to_owned();
    }
    let mut open = String::with_capacity(argument.len());
    for word in argument.split_inclusive(char::is_whitespace) {
        match password_of_login(word) {
            Some((begin, end)) => {
                open += &word[..begin];
                open += HIDDEN;
                open += &word[end..];
            }
            None => open += word,
        }
    }
    let (mut shown, mut rest) = (String::new(), open.as_str());
    while let Some(begin) = secret(rest) {
        let (name, value) = rest.split_at(begin);
        shown += name;
        shown += HIDDEN;
        let option = value.find(" -").unwrap_or(value.len());
        rest = match value.trim_start().starts_with(QUOTES) {
            true => "",
            false => &value[option..],
        };
    }
    shown + rest
}

/// The position of an address's password. The last `@` ends it: an `@` in a path hides too much, never too little.
fn password_of_login(word: &str) -> Option<(usize, usize)> {
    let end = word.rfind('@')?;
    word.match_indices("://").find_map(|(scheme, _)| {
        let user = scheme + "://".len();
        let colon = user + word[user..].find([':', '/'])?;
        let has_password = word[colon..].starts_with(':') && colon < end;
        has_password.then_some((colon + 1, end))
    })
}

/// Where the value of the first secret starts. Each name is checked once: an argument may have megabytes of them.
fn secret(text: &str) -> Option<usize> {
    let (mut begin, mut blank) = (0, false);
    for (at, c) in text.char_indices() {
        let sign = SIGNS.contains(&c);
        if sign && is_secret(text, begin, at) {
            return Some(at + 1);
        }
        // Blanks may stand between a name and its sign.
        if sign || matches!(c, ',' | ';' | '&') {
            (begin, blank) = (at + 1, false);
        } else if c.is_whitespace() {
            blank = true;
        } else if std::mem::take(&mut blank) {
            begin = at;
        }
    }
    None
}

fn is_secret(text: &str, begin: usize, sign: usize) -> bool {
    let name = text[begin..sign].trim_end().to_ascii_lowercase();
    let with_word = WORDS.iter().filter_map(|(first, second)| {
        let mut found = name.match_indices(first);
        found.find_map(|(at, _)| {
            let rest = &name[at + first.len()..];
            let rest = rest.strip_prefix(['-', '_', '.']).unwrap_or(rest);
            rest.starts_with(second).then_some(at)
        })
    });
    let ending = || {
        let name = name.trim_end_matches(|c| "-_.".contains(c) || QUOTES.contains(&c));
        let ends = ENDINGS.iter().find(|ending| name.ends_with(**ending))?;
        let harmless = HARMLESS.iter().any(|word| name.ends_with(word));
        (!harmless).then_some(name.len() - ends.len())
    };
    let found = with_word.min().or_else(ending);
    found.is_some_and(|at| !is_place(text, begin + at, sign))
}

/// Whether the text before a colon is a host before its port, or a file in a class path.
fn is_place(text: &str, begin: usize, sign: usize) -> bool {
    if !text[sign..].starts_with(':') {
        return false;
    }
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let before = text[..begin].trim_end_matches(of_name);
    let between_paths = before.ends_with('/') && text[sign + 1..].starts_with('/');
    before.ends_with("//") || between_paths || text[begin..sign].ends_with(".jar")
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
            (vec!["user=a,password=b,port=1"], "user=a,password=***"),
            (vec!["password=a,b;c=d"], "password=***"),
            (vec!["jdbc:x://u:pw@h:1/db"], "jdbc:x://u:***@h:1/db"),
            (vec!["http://me@x:hunter2@h:1"], "http://me@x:***@h:1"),
            (vec!["-Dpass_word=hunter2"], "-Dpass_word=***"),
            (vec!["http://h:1/a@b"], "http://h:***@b"),
            (vec!["http://h:1/a"], "http://h:1/a"),
            (vec!["spark://Driver@h:1"], "spark://Driver@h:1"),
            (
                vec!["-Des.hosts=http://u:p1secret@a:9200,https://v:p2secret@b:9200"],
                "-Des.hosts=http://u:***@b:9200",
            ),
            (
                vec!["http://u:a@b:1/x http://h:2/y z@w"],
                "http://u:***@b:1/x http://h:2/y z@w",
            ),
            (vec!["jdbc:x://u:a/b?c#d,e@f@h/db"], "jdbc:x://u:***@h/db"),
            (vec!["-Ddb.pwd=hunter3"], "-Ddb.pwd=***"),
            (
                vec!["-DdbPass=a", "x=1,auth=u:p,y=2"],
                "-DdbPass=*** x=1,auth=***",
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
            ("db.password: hunter2 more", "db.password:***"),
            ("Api-Key : hunter2==", "Api-Key :***"),
            (r#"{"token":"hunter2"}"#, r#"{"token":***"#),
            (r#"{"token" : "hunter2=="}"#, r#"{"token" :***"#),
            (r#"{\"token\":\"hunter2\"}"#, r#"{\"token\":***"#),
            ("{'db.pwd': 'hunter2 x=y'}", "{'db.pwd':***"),
            (r#"{"token":"a\" hunter2=x","b":1}"#, r#"{"token":***"#),
            (
                r#"{"tokens":["hunter2==","x, hunter2=="],"app":"orders"}"#,
                r#"{"tokens":***"#,
            ),
            (
                r#"{"tokens":["hunter2","hunter2"],"app":"orders"}"#,
                r#"{"tokens":***"#,
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
            ("DB_PASSWORD", "a=b,c", "***"),
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
    fn a_cut_never_splits_a_character() {
        assert_eq!(command(&["aé".to_owned()], 2), "a");
    }
}
