//! A java command line: options, main class or jar, arguments.

use std::collections::VecDeque;

use crate::os::proc::{maps, mask};

/// `main` is a class, a jar's path (`is_jar`), or empty if it is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    pub program: String,
    pub options: Vec<String>,
    pub main: String,
    pub is_jar: bool,
    pub arguments: Vec<String>,
    /// Why it is not complete.
    pub missing: Option<&'static str>,
}

/// That of a program other than a JVM, whose words are all arguments.
pub fn of_native(command: &[String]) -> Launch {
    Launch {
        program: command.first().cloned().unwrap_or_default(),
        arguments: command.get(1..).unwrap_or_default().to_vec(),
        ..Launch::default()
    }
}

/// The launcher's options whose value is the next argument.
const TAKES_VALUE: [&str; 19] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--limit-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--patch-module",
    "--enable-native-access",
    "--illegal-native-access",
    "--source",
    "-d",
    "--describe-module",
    "--launcher",
    "--finalization",
];
/// Those of jsvc, which starts secured HDFS data nodes.
const JSVC_TAKES_VALUE: [&str; 10] = [
    "-home",
    "-user",
    "-outfile",
    "-errfile",
    "-pidfile",
    "-jvm",
    "-procname",
    "-wait",
    "-cwd",
    "-umask",
];
/// More arguments are not read, nor from files.
const MAX_ARGUMENTS: usize = 20_000;

/// Split a command line whose first argument is the program. `read_file` returns the text of an `@file`.
pub fn parse(command: &[String], read_file: impl Fn(&str) -> Option<String>) -> Launch {
    let jsvc = command
        .first()
        .is_some_and(|program| maps::file_name(program).starts_with("jsvc"));
    let takes_value = |option: &str| {
        TAKES_VALUE.contains(&option) || (jsvc && JSVC_TAKES_VALUE.contains(&option))
    };
    let mut rest = Words::new(command.get(1..).unwrap_or_default(), read_file);
    let mut launch = Launch {
        program: command.first().cloned().unwrap_or_default(),
        ..Launch::default()
    };
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-jar" | "-m" | "--module" => {
                launch.is_jar = argument == "-jar";
                launch.main = main_of(&argument, rest.next().unwrap_or_default());
                break;
            }
            option if takes_value(option) => {
                launch.options.push(argument);
                launch.options.extend(rest.next());
            }
            option if option.starts_with("--module=") => {
                launch.main = main_of("-m", option["--module=".len()..].to_owned());
                break;
            }
            // An `@file` that cannot be read may contain anything, but is not a class.
            option if option.starts_with('-') || (rest.enabled && option.starts_with('@')) => {
                launch.options.push(argument);
            }
            _ => {
                launch.main = argument;
                break;
            }
        }
    }
    launch.missing = rest
        .unread
        .then_some("a file with its arguments could not be read");
    launch.arguments = rest.unexpanded();
    launch
}

/// `module/class` names the class; a module alone is its own name.
fn main_of(option: &str, value: String) -> String {
    match value.split_once('/') {
        Some((_, class)) if option != "-jar" => class.to_owned(),
        _ => value,
    }
}

/// The arguments, with each `@file` replaced by the file's arguments as the launcher does it: up to the main class,
/// never within a file, and not after `--disable-@files`.
struct Words<F> {
    waiting: VecDeque<Word>,
    enabled: bool,
    read_file: F,
    /// How many may still come from files.
    left: usize,
    unread: bool,
}

struct Word {
    text: String,
    of_file: bool,
}

impl<F: Fn(&str) -> Option<String>> Words<F> {
    fn new(arguments: &[String], read_file: F) -> Self {
        let words = arguments.iter().take(MAX_ARGUMENTS).map(|text| Word {
            text: text.clone(),
            of_file: false,
        });
        Self {
            waiting: words.collect(),
            enabled: true,
            read_file,
            left: MAX_ARGUMENTS,
            unread: false,
        }
    }

    /// A loop, because as many files as there are arguments may be empty.
    fn next(&mut self) -> Option<String> {
        loop {
            let word = self.waiting.pop_front()?;
            self.enabled &= word.text != "--disable-@files";
            let name = word
                .text
                .strip_prefix('@')
                .filter(|_| self.enabled && !word.of_file);
            let Some(name) = name else {
                return Some(word.text);
            };
            let Some(text) = (self.read_file)(name) else {
                self.unread = true;
                return Some(word.text);
            };
            let words = split_file(&text, self.left);
            self.left -= words.len();
            for text in words.into_iter().rev() {
                self.waiting.push_front(Word {
                    text,
                    of_file: true,
                });
            }
        }
    }

    fn unexpanded(self) -> Vec<String> {
        self.waiting.into_iter().map(|word| word.text).collect()
    }
}

/// The grammar of `@file`: white space separates, quotes group, `\` escapes within quotes, `#` starts a comment.
/// Returns the first `most` words.
fn split_file(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next().filter(|_| words.len() < most) {
        match (quote, c) {
            (Some(_), '\\') => word
                .get_or_insert_default()
                .extend(chars.next().map(unescaped)),
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while chars.next_if(|&c| c != '\n').is_some() {},
            (None, c) if c.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words.truncate(most);
    words
}

fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\u{c}',
        other => other,
    }
}

impl Launch {
    /// The main class for selectors: the class, or the jar's file name.
    pub fn main_class(&self) -> &str {
        if self.is_jar {
            maps::file_name(&self.main)
        } else {
            &self.main
        }
    }

    /// The same with values that look like secrets masked, for everything that leaves the host. Other programs than
    /// launchers have command lines of their own: their main class here may be the value of an option.
    pub fn masked(&self) -> Self {
        let all = [
            std::slice::from_ref(&self.program),
            &self.options[..],
            std::slice::from_ref(&self.main),
            &self.arguments[..],
        ];
        let mut words = mask::words(&all.concat()).into_iter();
        let program = words.next().unwrap_or_default();
        let mut options: Vec<String> = words.collect();
        let mut rest = options.split_off(self.options.len()).into_iter();
        Self {
            program,
            main: rest.next().unwrap_or_default(),
            is_jar: self.is_jar,
            arguments: rest.collect(),
            options,
            missing: self.missing,
        }
    }

    /// The last part of the class's name, or the jar's file name without its ending.
    pub fn simple_name(&self) -> &str {
        let name = self.main_class();
        if self.is_jar {
            name.strip_suffix(".jar").unwrap_or(name)
        } else {
            name.rsplit('.').next().unwrap_or(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(line: &str) -> Launch {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&command, |name| {
            (name == "args").then(|| "-cp \"a b.jar\" # note\n'p.Main' one".to_owned())
        })
    }

    #[test]
    fn where_the_main_class_is() {
        for (line, main, simple, options, arguments) in [
            (
                "java -Xmx1g -cp a:b org.x.Main 1 2",
                "org.x.Main",
                "Main",
                3,
                2,
            ),
            (
                "java -jar /opt/app-1.2.jar x",
                "app-1.2.jar",
                "app-1.2",
                0,
                1,
            ),
            (
                "java --module-path p -m mod/org.x.Main",
                "org.x.Main",
                "Main",
                2,
                0,
            ),
            ("java --module=mod/org.x.Main y", "org.x.Main", "Main", 0, 1),
            (
                "java --add-opens a/b=ALL-UNNAMED -Dx=-jar Main @args",
                "Main",
                "Main",
                3,
                1,
            ),
            ("java @args two", "p.Main", "Main", 2, 2),
            ("java @secret p.Main two", "p.Main", "Main", 1, 1),
            ("java @secret", "", "", 1, 0),
            ("java --disable-@files -cp x @args", "@args", "@args", 3, 0),
            (
                "jsvc.exec -user hdfs -cp c -outfile o a.b.Starter",
                "a.b.Starter",
                "Starter",
                6,
                0,
            ),
            ("java -version", "", "", 1, 0),
            ("java -cp", "", "", 1, 0),
        ] {
            let got = launch(line);
            assert_eq!(
                (got.main_class(), got.simple_name()),
                (main, simple),
                "{line}"
            );
            assert_eq!(
                (got.options.len(), got.arguments.len()),
                (options, arguments),
                "{line}"
            );
        }
    }

    #[test]
    fn what_an_unread_file_may_hide_is_told() {
        for (line, missing) in [
            ("java Main", false),
            ("java @args two", false),
            ("java @secret p.Main", true),
            ("java p.Main @secret", false),
            ("java --disable-@files @secret", false),
        ] {
            assert_eq!(launch(line).missing.is_some(), missing, "{line}");
        }
    }

    #[test]
    fn what_leaves_the_host_is_masked() {
        let masked = launch("app --token hunter2 --port 1").masked();
        assert_eq!((masked.main.as_str(), masked.options.len()), ("***", 1));
        let masked = launch("java -Dx.secret=hunter2 a.Main --password hunter2 id=7").masked();
        assert_eq!(masked.simple_name(), "Main");
        assert_eq!(masked.options, ["-Dx.secret=***"]);
        assert_eq!(masked.arguments, ["--password", "***", "id=7"]);
        let mysql = ["mysql", "-phunter2"].map(str::to_owned);
        assert_eq!(of_native(&mysql).masked().arguments, ["-p***"]);
    }

    #[test]
    fn files_of_arguments() {
        assert_eq!(
            split_file("a 'b c'\"d\\te\" # x\n#y\n f\\g", 9),
            ["a", "b cd\te", "f\\g"]
        );
        assert_eq!(split_file("\"\" x\"unclosed", 9), ["", "xunclosed"]);
        assert_eq!(split_file("a b c", 2), ["a", "b"]);
        assert!(split_file("a", 0).is_empty());
    }
}
