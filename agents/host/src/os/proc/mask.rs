//! Secrets in command lines are masked before anything leaves the host. `hprofiler/base/passwords.py` has the same rules;
//! both are tested with `tests/secrets.json`.

use super::maps;

const HIDDEN: &str = "***";
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// Between a name and its value. The colon is for JSON, YAML and headers.
const SIGNS: [char; 2] = ['=', ':'];
/// Parts of the names of secrets. One of `-_.` may be between both.
const WORDS: [(&str, &str); 14] = [
    ("pass", "word"),
    ("pass", "wd"),
    ("pass", "phrase"),
    ("pass", "code"),
    ("secret", ""),
    ("token", ""),
    ("credential", ""),
    ("signature", ""),
    ("api", "key"),
    ("access", "key"),
    ("account", "key"),
    ("private", "key"),
    ("encryption", "key"),
    ("azure", "sas"),
];
/// Follow such a word in names of settings that are no secrets.
const SETTINGS: [&str; 2] = ["keysize", "keygen"];
/// Ends of the names of secrets. Many other words begin with these.
const ENDINGS: [&str; 11] = [
    "key",
    "pw",
    "auth",
    "authorization",
    "cookie",
    "creds",
    "jwt",
    "sas",
    "sig",
    ".pat",
    "-pat",
];
/// Before `key`, with or without one of `-_.`: keys of data.
const OF_DATA: [&str; 6] = ["partition", "sort", "foreign", "join", "group", "row"];
/// Before `pass`.
const HARMLESS: [&str; 2] = ["by", "com"];
/// Shells keep folders in these.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];
/// How tokens begin that are known by their form: JSON Web Tokens, and those of GitHub, GitLab, Slack, Google, Vault.
const TOKENS: [&str; 11] = [
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AIza",
    "ya29.",
    "hvs.",
];
const SHORTEST_TOKEN: usize = 20;
/// The word before a token in a header.
const BEARER: &str = "bearer";
/// The word before a login in a header.
const BASIC: &str = "basic";
/// How the names of programs and main classes begin, and their options with a login or a password, attached or as the
/// next word.
const LOGINS: [(&str, &[&str]); 14] = [
    ("mysql", &["-p"]),
    ("mariadb", &["-p"]),
    ("mongo", &["-p"]),
    ("sshpass", &["-p"]),
    ("beeline", &["-p"]),
    ("login", &["-p"]), // `docker login`
    ("7z", &["-p"]),
    ("sqlcmd", &["-P"]),
    ("mosquitto_", &["-P"]),
    ("zip", &["-P"]),
    ("redis-cli", &["-a"]),
    ("ldap", &["-w"]),
    ("smbclient", &["-U"]),
    ("curl", &["-u", "-U", "--user", "--proxy-user"]),
];
const WEB: [&str; 2] = ["http", "https"];
/// Oracle's programs, which take `user/password@place`.
const ORACLES: [&str; 5] = ["sqlplus", "sqlldr", "rman", "expdp", "impdp"];

/// The arguments as one line of at most `limit` bytes, values that look like secrets masked.
pub fn command(arguments: &[String], limit: usize) -> String {
    cut(words(arguments).join(" "), limit)
}

/// The arguments one by one, values that look like secrets masked. The first one is the program.
pub fn words(arguments: &[String]) -> Vec<String> {
    let mut announced = false;
    let mut program = Program::Other;
    let word = |argument: &String| {
        // A password may look like an option. If it is hidden, the next argument may still be a password.
        let follows_secret = std::mem::replace(&mut announced, announces_secret(argument));
        if follows_secret {
            announced |= argument.eq_ignore_ascii_case(BASIC);
            return HIDDEN.to_owned();
        }
        let (shown, more) = program.mask(&masked(argument));
        announced |= more;
        shown
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
    let option = argument.starts_with('-')
        && !of_jvm
        && !argument.contains(['=', ':', '/'])
        && secret(&format!("{argument}=")).is_some();
    // `Authorization:`, and a header that was split at its blanks.
    option
        || argument.eq_ignore_ascii_case(BEARER)
        || argument.ends_with(':') && secret(argument) == Some(argument.len())
}

/// A program that was started by these arguments, maybe by a shell or a wrapper, and has logins in its own.
enum Program {
    Other,
    Options(&'static [&'static str]),
    Oracle,
}

impl Program {
    /// Mask the logins and announced secrets of an argument, which may be a shell's whole script. True: the next
    /// argument is one.
    fn mask(&mut self, argument: &str) -> (String, bool) {
        let (mut shown, mut announced) = (String::with_capacity(argument.len()), false);
        for part in argument.split_inclusive(char::is_whitespace) {
            let word = part.trim_end().trim_matches(QUOTES);
            if word.is_empty() {
                shown += part;
                continue;
            }
            let login = self.login(word);
            let follows_secret = std::mem::replace(
                &mut announced,
                login == Some(word.len()) || announces_secret(word),
            );
            let hidden = match follows_secret {
                true => Some(0),
                false => login.filter(|begin| *begin < word.len()),
            };
            match hidden {
                Some(begin) => {
                    shown += &word[..begin];
                    shown += HIDDEN;
                    shown += &part[part.trim_end().len()..];
                }
                None => shown += part,
            }
            self.start(word);
        }
        (shown, announced)
    }

    /// Where the login in a word starts. At its end: it is the next word.
    fn login(&self, word: &str) -> Option<usize> {
        match self {
            Self::Other => None,
            Self::Oracle => {
                let password = word.find('/')? + 1;
                (!word.starts_with(['/', '-', '@', '.'])).then_some(password)
            }
            Self::Options(options) => options.iter().find_map(|option| {
                let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1);
                let Some(letter) = letter else {
                    return (word == *option).then_some(word.len());
                };
                if word.starts_with(option) {
                    return Some(option.len());
                }
                // `-su` is `-s -u`.
                let several = word.strip_prefix('-')?.strip_suffix(letter)?;
                let flags = several.bytes().all(|byte| byte.is_ascii_alphabetic());
                flags.then_some(word.len())
            }),
        }
    }

    fn start(&mut self, word: &str) {
        // `beeline`, `org.apache.hive.beeline.BeeLine`
        let name = maps::file_name(word).rsplit('.').next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match LOGINS.iter().find(|(begin, _)| name.starts_with(begin)) {
            Some((_, options)) => *self = Self::Options(options),
            None if ORACLES.contains(&name.as_str()) => *self = Self::Oracle,
            None => {}
        }
    }
}

/// Hides what follows `name=` or `"name":` with a secret's name, up to the next option or to the end, because the value
/// may contain any separator. Also hides the passwords of URLs, and tokens that are known by their form.
fn masked(argument: &str) -> String {
    without_tokens(&without_values(argument))
}

fn without_values(argument: &str) -> String {
    if !argument.contains(SIGNS) {
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

/// After the values: a token's end may be the name of a secret.
fn without_tokens(argument: &str) -> String {
    let of_token = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
    let (mut shown, mut bearer) = (String::with_capacity(argument.len()), false);
    for part in argument.split_inclusive(|c| !of_token(c)) {
        let word = part.trim_end_matches(|c| !of_token(c));
        let known = TOKENS.iter().any(|begin| word.starts_with(begin));
        let hidden = match word.is_empty() {
            true => false, // a second blank
            false => std::mem::replace(&mut bearer, word.eq_ignore_ascii_case(BEARER)),
        };
        if hidden || known && word.len() >= SHORTEST_TOKEN {
            shown += HIDDEN;
            shown += &part[word.len()..];
        } else {
            shown += part;
        }
    }
    shown
}

/// The position of an address's password. The last `@` ends it: an `@` in a path hides too much, never too little.
fn password_of_login(word: &str) -> Option<(usize, usize)> {
    let end = word.rfind('@')?;
    let of_url = word.match_indices("://").find_map(|(scheme, sign)| {
        let user = scheme + sign.len();
        // A user of a web address without a password may be a token.
        let of_web = WEB.iter().any(|web| ends_with(&word[..scheme], web));
        let after_user = |c: char| matches!(c, ':' | '/') || c == '@' && of_web;
        let after_user = user + word[user..].find(after_user)?;
        let begin = match word.as_bytes()[after_user] {
            b':' => after_user + 1,
            b'@' => user,
            _ => return None,
        };
        (begin <= end).then_some((begin, end))
    });
    of_url.or_else(|| match word.find("jdbc:oracle:") {
        Some(begin) => password_of_oracle(word, begin, end),
        None => password_of_plain(word, end),
    })
}

/// `user:password@host`, but not `image:tag@sha256:…`
fn password_of_plain(word: &str, end: usize) -> Option<(usize, usize)> {
    let begin = word[..end].find(':')? + 1;
    let of_user = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain = word[..begin - 1].ends_with(of_user) && !word[begin..end].contains('/');
    (plain && begin < end && !word[end..].starts_with("@sha256:")).then_some((begin, end))
}

fn ends_with(text: &str, end: &str) -> bool {
    let begin = text.len().checked_sub(end.len());
    begin.is_some_and(|begin| text.as_bytes()[begin..].eq_ignore_ascii_case(end.as_bytes()))
}

/// `jdbc:oracle:thin:user/password@place`
fn password_of_oracle(word: &str, begin: usize, end: usize) -> Option<(usize, usize)> {
    let slash = begin + word[begin..].find(['/', '@'])?;
    (word[slash..].starts_with('/') && slash < end).then_some((slash + 1, end))
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
            let is_setting = SETTINGS.iter().any(|word| rest.starts_with(word));
            (rest.starts_with(second) && !is_setting).then_some(at)
        })
    });
    let ending = || {
        let name = name.trim_end_matches(|c| "-_.".contains(c) || QUOTES.contains(&c));
        let mut ends = ENDINGS
            .iter()
            .filter_map(|end| Some((name.strip_suffix(end)?, *end)));
        let (before, _) = ends.find(|(before, end)| *end != "key" || !is_of_data(before))?;
        Some(before.len())
    };
    let found = with_word.chain(short_word(&name)).min().or_else(ending);
    found.is_some_and(|at| !is_place(text, begin + at, sign))
}

/// Where one of the short words stands that are parts of many others.
fn short_word(name: &str) -> Option<usize> {
    let letter = |c: char| c.is_ascii_alphabetic();
    let found = |word: &'static str, is_alone: fn(&str) -> bool| {
        let mut found = name.match_indices(word);
        found.find_map(move |(at, _)| {
            let rest = &name[at + word.len()..];
            (!rest.starts_with(letter) && is_alone(&name[..at]) && !rest.starts_with(".dir"))
                .then_some(at)
        })
    };
    let words = [
        found("pass", |before| {
            !HARMLESS.iter().any(|word| before.ends_with(word))
        }),
        found("pwd", |_| true),
        found("pw", |before| {
            !before.ends_with(|c: char| c.is_ascii_alphabetic())
        }),
        found("sas", |before| before.ends_with(['.', '/'])),
    ];
    words.into_iter().flatten().min()
}

/// Whether a key is one of data, from the text before it. Names of files have keys too: `/key=5/part-0`.
fn is_of_data(before: &str) -> bool {
    let word = before.strip_suffix(['-', '_', '.']).unwrap_or(before);
    before.ends_with(['/'])
        || before.ends_with("mon")
        || OF_DATA.iter().any(|end| word.ends_with(end))
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

    /// The same table is in the tests of `passwords.py`.
    #[test]
    fn the_table_of_secrets() {
        let table = include_str!("../../../../../tests/secrets.json");
        let table: std::collections::BTreeMap<String, Vec<String>> =
            serde_json::from_str(table).unwrap();
        let mut wrong = Vec::new();
        for (kind, given) in table
            .iter()
            .flat_map(|(kind, all)| all.iter().map(move |one| (kind, one)))
        {
            let words: Vec<&str> = given.split(' ').collect();
            for shown in [shown(&words), shown(&[given])] {
                let right = match kind.as_str() {
                    "hidden" => !shown.contains("hunter2") && shown.contains(HIDDEN),
                    _ => shown == *given,
                };
                if !right {
                    wrong.push(shown);
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
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
            (vec!["http://me@x:hunter2@h:1"], "http://***@h:1"),
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
    fn keys_signatures_and_tokens() {
        for (given, want) in [
            (
                "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net=hunter2==",
                "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net=***",
            ),
            (
                "-Dfs.azure.sas.c.acct.blob.core.windows.net=?sv=1&sig=hunter2",
                "-Dfs.azure.sas.c.acct.blob.core.windows.net=***",
            ),
            (
                "https://a.net/c?sv=1&sig=hunter2%3D",
                "https://a.net/c?sv=1&sig=***",
            ),
            (
                "https://a.net/c?X-Amz-Signature=hunter2",
                "https://a.net/c?X-Amz-Signature=***",
            ),
            (
                "a;SharedAccessSignature=hunter2",
                "a;SharedAccessSignature=***",
            ),
            ("Authorization: Bearer hunter2", "Authorization:***"),
            (
                "-Dheader=Bearer  hunter2 -Dy=1",
                "-Dheader=Bearer  *** -Dy=1",
            ),
            ("Cookie: id=hunter2", "Cookie:***"),
            ("ghp_hunter2hunter2hunter2", "***"),
            ("x,eyJhbGciOiJub25lIn0.e30.hunter2_-,y", "x,***,y"),
            ("eyJ-is-short", "eyJ-is-short"),
            ("https://ghp_1@github.com/a/b", "https://***@github.com/a/b"),
            ("HTTPS://hunter2:@h/a", "HTTPS://hunter2:***@h/a"),
            (
                "jdbc:oracle:thin:scott/tiger@//h:1521/s",
                "jdbc:oracle:thin:scott/***@//h:1521/s",
            ),
            (
                "jdbc:oracle:thin:@//h:1521/s",
                "jdbc:oracle:thin:@//h:1521/s",
            ),
            ("hdfs/node1@EXAMPLE.COM", "hdfs/node1@EXAMPLE.COM"),
            ("--to=kim:hunter2@db:1521", "--to=kim:***@db:1521"),
            ("app:1.2@sha256:00ff", "app:1.2@sha256:00ff"),
            ("/a/x@1.jar:/a/y@2.jar", "/a/x@1.jar:/a/y@2.jar"),
        ] {
            assert_eq!(shown(&[given]), want);
        }
        for (given, want) in [
            (
                vec!["curl", "-H", "Authorization:", "Bearer", "hunter2"],
                "curl -H Authorization:*** *** ***",
            ),
            (
                vec!["app", "--header", "x", "bearer", "hunter2"],
                "app --header x bearer ***",
            ),
        ] {
            assert_eq!(shown(&given), want);
        }
    }

    #[test]
    fn logins_in_the_options_of_known_programs() {
        for (given, want) in [
            (
                "mysql -u root -phunter2 -P 3306 db",
                "mysql -u root -p*** -P 3306 db",
            ),
            ("/usr/bin/mysqldump -p hunter2", "/usr/bin/mysqldump -p ***"),
            ("sudo sshpass -p hunter2 ssh h", "sudo sshpass -p *** ssh h"),
            (
                "curl -sSu kim:hunter2 --user-agent x http://h/",
                "curl -sSu *** --user-agent x http://h/",
            ),
            ("redis-cli -a hunter2 ping", "redis-cli -a *** ping"),
            (
                "java a.hive.beeline.BeeLine -n kim -p hunter2",
                "java a.hive.beeline.BeeLine -n kim -p ***",
            ),
            (
                "sqlplus -s scott/tiger@db @a/b.sql",
                "sqlplus -s scott/*** @a/b.sql",
            ),
            ("sshd -p 22", "sshd -p 22"),
            (
                "java -p mods -jar mysql-loader.jar -p 8080",
                "java -p mods -jar mysql-loader.jar -p 8080",
            ),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(shown(&words), want);
        }
        let script = "mysql -phunter2 <'x' && curl -u kim:hunter2 h";
        assert_eq!(
            shown(&["sh", "-c", script]),
            "sh -c mysql -p*** <'x' && curl -u *** h"
        );
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
