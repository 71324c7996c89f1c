//! The user's selector, and which processes it matches.

use std::collections::{BTreeMap, HashSet};

use regex::{Regex, RegexBuilder};

use crate::discovery::scan::{environment, parents, Seen};
use crate::jvm::command_line::Launch;
use crate::os::proc::{mask, read_text};
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::{Alternative, Capture, Query, Source};

/// The memory of a compiled regex, in bytes.
const REGEX_SIZE: usize = 1 << 20;
/// The longest label, in characters.
const LABEL_LENGTH: usize = 200;

pub enum Selector {
    Pids(HashSet<i32>),
    Text(String),
    Regex(Regex),
    Rule {
        any: Vec<Rule>,
        labels: Vec<Label>,
        template: String,
    },
}

#[derive(Default)]
pub struct Rule {
    main_class: Vec<Regex>,
    arguments: Option<Regex>,
    options: Option<Regex>,
    environment: Vec<(String, Regex)>,
    user: Vec<String>,
    cgroup: Option<Regex>,
    program: Vec<Regex>,
    parents: Option<Regex>,
}

pub struct Label {
    label: String,
    from: Source,
    name: String,
    regex: Regex,
}

impl Selector {
    pub fn new(query: Query) -> Result<Self, Failure> {
        Ok(match query {
            Query::Pids { pids } => Self::Pids(pids.into_iter().collect()),
            Query::Text { text } => Self::Text(text),
            Query::Regex { regex } => Self::Regex(compile(&regex)?),
            Query::Rule {
                any,
                labels,
                process_label,
            } => Self::Rule {
                any: any.into_iter().map(Rule::new).collect::<Result<_, _>>()?,
                labels: labels
                    .into_iter()
                    .map(|(label, capture)| Label::new(label, capture))
                    .collect::<Result<_, _>>()?,
                template: process_label,
            },
        })
    }

    /// `wanted`: whether the process is of the kind that is searched (JVMs by default). Others match only a rule that
    /// names their program.
    pub fn matches(&self, process: &Seen, wanted: bool) -> bool {
        match self {
            Self::Rule { any, .. } => {
                let facts = Facts::new(process);
                any.iter()
                    .any(|rule| (wanted || !rule.program.is_empty()) && rule.holds(&facts))
            }
            _ if !wanted => false,
            Self::Pids(pids) => pids.contains(&process.pid),
            Self::Text(text) => shown(process).contains(text.as_str()),
            Self::Regex(regex) => regex.is_match(&shown(process)),
        }
    }

    /// This selector as if upper and lower case were the same. None: its kind has no case.
    pub fn ignoring_case(&self) -> Option<Self> {
        let regex = match self {
            Self::Text(text) => regex::escape(text),
            Self::Regex(regex) => regex.as_str().to_owned(),
            _ => return None,
        };
        let regex = RegexBuilder::new(&regex).case_insensitive(true).build();
        regex.ok().map(Self::Regex)
    }

    /// The process's short name and labels.
    pub fn label(&self, process: &Seen) -> (String, BTreeMap<String, String>) {
        let Self::Rule {
            labels, template, ..
        } = self
        else {
            return (process.plain_label(), process.plain_labels());
        };
        let facts = Facts::new(process);
        let labels = labels
            .iter()
            .filter_map(|label| Some((label.label.clone(), label.value(&facts)?)))
            .collect();
        let label = fill(template, &labels).unwrap_or_else(|| process.plain_label());
        (label, labels)
    }
}

fn shown(process: &Seen) -> String {
    mask::words(&process.command).join(" ")
}

/// The texts for rules and labels, with secrets masked, because many conditions could reveal a value. They are read on
/// demand, since most processes fail at the user or the program.
struct Facts<'a> {
    process: &'a Seen,
    launch: std::cell::OnceCell<Launch>,
    environment: std::cell::OnceCell<BTreeMap<String, String>>,
    cgroup: std::cell::OnceCell<String>,
}

impl<'a> Facts<'a> {
    fn new(process: &'a Seen) -> Self {
        Self {
            process,
            launch: Default::default(),
            environment: Default::default(),
            cgroup: Default::default(),
        }
    }

    fn launch(&self) -> &Launch {
        self.launch.get_or_init(|| self.process.launch.masked())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let variables = self.environment.get_or_init(|| environment(self.process));
        Some(mask::variable(name, variables.get(name)?))
    }

    fn cgroup(&self) -> &str {
        let read =
            || read_text(format!("/proc/{}/cgroup", self.process.pid), 1 << 20).unwrap_or_default();
        self.cgroup.get_or_init(read)
    }

    fn text(&self, from: Source, name: &str) -> Option<String> {
        Some(match from {
            Source::Arguments => self.launch().arguments.join(" "),
            Source::ArgumentLines => self.launch().arguments.join("\n"),
            Source::Options => self.launch().options.join(" "),
            Source::Environment => self.variable(name)?,
            Source::Cgroup => self.cgroup().to_owned(),
            Source::MainClass => self.launch().main_class().to_owned(),
            Source::Parents => parents(self.process),
        })
    }
}

impl Rule {
    fn new(given: Alternative) -> Result<Self, Failure> {
        let optional = |regex: Option<String>| regex.as_deref().map(compile).transpose();
        let globs = |globs: &[String]| {
            let compiled = globs.iter().map(|glob| compile_glob(glob));
            compiled.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            main_class: globs(&given.main_class)?,
            program: globs(&given.program)?,
            arguments: optional(given.arguments)?,
            options: optional(given.options)?,
            environment: given
                .environment
                .into_iter()
                .map(|(name, regex)| Ok((name, compile(&regex)?)))
                .collect::<Result<_, Failure>>()?,
            user: given.user,
            cgroup: optional(given.cgroup)?,
            parents: optional(given.parents)?,
        })
    }

    fn holds(&self, facts: &Facts) -> bool {
        let found = |regex: &Option<Regex>, words: &[String]| {
            regex.as_ref().is_none_or(|r| r.is_match(&words.join(" ")))
        };
        let one_of = |globs: &[Regex], name: &str| {
            globs.is_empty() || globs.iter().any(|glob| glob.is_match(name))
        };
        one_of(&self.program, &facts.process.program)
            && (self.user.is_empty() || self.user.contains(&facts.process.user))
            && one_of(&self.main_class, facts.launch().main_class())
            && found(&self.arguments, &facts.launch().arguments)
            && found(&self.options, &facts.launch().options)
            && self
                .environment
                .iter()
                .all(|(name, regex)| facts.variable(name).is_some_and(|v| regex.is_match(&v)))
            && self
                .cgroup
                .as_ref()
                .is_none_or(|regex| regex.is_match(facts.cgroup()))
            && self
                .parents
                .as_ref()
                .is_none_or(|regex| regex.is_match(&parents(facts.process)))
    }
}

impl Label {
    fn new(label: String, capture: Capture) -> Result<Self, Failure> {
        let regex = compile(&capture.regex)?;
        if regex.captures_len() != 2 {
            return Err(Failure::plain(format!(
                "the regex of label {label} needs exactly one group: {}",
                capture.regex
            ))
            .coded(Code::BadSelector));
        }
        Ok(Self {
            label,
            from: capture.from,
            name: capture.name,
            regex,
        })
    }

    fn value(&self, facts: &Facts) -> Option<String> {
        let text = facts.text(self.from, &self.name)?;
        let value = self.regex.captures(&text)?.get(1)?.as_str();
        Some(
            value
                .chars()
                .filter(|c| !c.is_control())
                .take(LABEL_LENGTH)
                .collect(),
        )
    }
}

/// Fill in the labels' values. None: one of them has no value, or the template is empty.
fn fill(template: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(labels.get(name)?);
        rest = after;
    }
    filled.push_str(rest);
    let filled: String = filled.chars().take(LABEL_LENGTH).collect();
    (!filled.is_empty()).then_some(filled)
}

pub fn compile(regex: &str) -> Result<Regex, Failure> {
    RegexBuilder::new(regex)
        .size_limit(REGEX_SIZE)
        .build()
        .map_err(|error| {
            Failure::new(
                format!("the regular expression {regex:?} cannot be used: {error}"),
                "correct the selector",
            )
            .coded(Code::BadSelector)
        })
}

/// `*` matches any text.
pub fn compile_glob(glob: &str) -> Result<Regex, Failure> {
    let parts: Vec<String> = glob.split('*').map(regex::escape).collect();
    compile(&format!("(?s)^{}$", parts.join(".*")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> Seen {
        Seen::of(7, line)
    }

    fn selector(json: &str) -> Result<Selector, Failure> {
        Selector::new(serde_json::from_str(json).unwrap())
    }

    const EXECUTOR: &str =
        "java -Xmx1g -Dspark.x=1 org.apache.spark.Executor --executor-id 12 --host h";

    #[test]
    fn every_member_of_an_alternative_must_hold() {
        for (rule, want) in [
            (r#"{"main_class":["a.B","org.apache.spark.*"]}"#, true),
            (r#"{"main_class":["org.apache.spark"]}"#, false),
            (r#"{"main_class":["*.Executor"],"user":["root"]}"#, false),
            (
                r#"{"arguments":"--executor-id \\d+","options":"-Dspark","user":["yarn"]}"#,
                true,
            ),
            (r#"{"arguments":"-Dspark"}"#, false),
            (r#"{"environment":{"NO_SUCH_NAME":"."}}"#, false),
            (r#"{}"#, true),
        ] {
            let selector = selector(&format!(r#"{{"kind":"rule","any":[{rule}]}}"#)).unwrap();
            assert_eq!(selector.matches(&seen(EXECUTOR), true), want, "{rule}");
        }
    }

    #[test]
    fn what_is_not_looked_for_matches_by_its_program_only() {
        for (rule, wanted, want) in [
            (r#"{"program":["ja*","impalad"]}"#, false, true),
            (r#"{"program":["impalad"]}"#, true, false),
            (r#"{"program":["java"],"user":["root"]}"#, false, false),
            (r#"{"user":["yarn"]}"#, false, false),
            (r#"{"user":["yarn"]},{"program":["java"]}"#, false, true),
        ] {
            let selector = selector(&format!(r#"{{"kind":"rule","any":[{rule}]}}"#)).unwrap();
            assert_eq!(selector.matches(&seen(EXECUTOR), wanted), want, "{rule}");
        }
        let text = selector(r#"{"kind":"text","text":"java"}"#).unwrap();
        assert!(text.matches(&seen("java x"), true) && !text.matches(&seen("java x"), false));
    }

    #[test]
    fn labels_fill_the_template_or_fall_back() {
        let json = r#"{"kind":"rule","any":[{}],"process_label":"executor {id}",
            "labels":{"id":{"from":"arguments","regex":"--executor-id (\\S+)"},
                      "none":{"from":"environment","name":"NO_SUCH_NAME","regex":"(.)"}}}"#;
        let selector = selector(json).unwrap();
        let (label, labels) = selector.label(&seen(EXECUTOR));
        assert_eq!(label, "executor 12");
        assert_eq!(
            labels.into_iter().collect::<Vec<_>>(),
            [("id".to_owned(), "12".to_owned())]
        );
        assert_eq!(selector.label(&seen("java x.y.Other")).0, "Other");
    }

    #[test]
    fn labels_tell_no_secrets() {
        let json = r#"{"kind":"rule","any":[{}],"process_label":"{a} {o}",
            "labels":{"a":{"from":"arguments","regex":"--token (\\S+)"},
                      "o":{"from":"options","regex":"-Dx.password=(\\S+)"}}}"#;
        let process = seen("java -Dx.password=hunter2 x.Main --token hunter2");
        assert_eq!(selector(json).unwrap().label(&process).0, "*** ***");
    }

    #[test]
    fn no_condition_can_be_used_to_guess_a_secret() {
        let process = seen("java -Dx.password=hunter2 x.Main --token hunter3");
        for (json, want) in [
            (r#"{"kind":"text","text":"hunter"}"#, false),
            (
                r#"{"kind":"text","text":"-Dx.password=*** x.Main --token"}"#,
                true,
            ),
            (r#"{"kind":"regex","regex":"word=h"}"#, false),
            (r#"{"kind":"regex","regex":"x.Main --token [h*]"}"#, true),
            (
                r#"{"kind":"rule","any":[{"arguments":"--token h"}]}"#,
                false,
            ),
            (r#"{"kind":"rule","any":[{"arguments":"--token"}]}"#, true),
            (r#"{"kind":"rule","any":[{"options":"password=h"}]}"#, false),
            (r#"{"kind":"rule","any":[{"options":"password="}]}"#, true),
        ] {
            let selector = selector(json).unwrap();
            assert_eq!(selector.matches(&process, true), want, "{json}");
        }
        let by_class = r#"{"kind":"rule","any":[{"main_class":["hunter*"]}]}"#;
        let native = seen("app --token hunter2");
        assert_eq!(native.launch.main, "hunter2");
        assert!(!selector(by_class).unwrap().matches(&native, true));
    }

    #[test]
    fn bad_expressions_are_refused() {
        assert!(selector(r#"{"kind":"regex","regex":"("}"#).is_err());
        assert!(selector(r#"{"kind":"regex","regex":"\\w{1000}{1000}"}"#).is_err());
        let two = r#"{"kind":"rule","any":[],"labels":{"a":{"from":"options","regex":"(.)(.)"}}}"#;
        assert!(selector(two).is_err());
    }
}
