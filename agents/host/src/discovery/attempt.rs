//! Map and reduce tasks. All have the same main class and differ only in the attempt among their arguments.

use std::collections::BTreeMap;

use crate::jvm::command_line::Launch;

const TASK: &str = "org.apache.hadoop.mapred.YarnChild";

/// The parts of `attempt_1700000000000_0042_m_000001_0`.
#[derive(Debug, PartialEq, Eq)]
pub struct Attempt {
    job: String,
    task: String,
    number: String,
}

impl Attempt {
    /// None: the JVM does not run a task.
    pub fn of(launch: &Launch) -> Option<Self> {
        let mut arguments = launch
            .arguments
            .iter()
            .filter(|_| launch.main_class() == TASK);
        arguments.find_map(|argument| parse(argument))
    }

    /// The short name of its process, as the selector `mapreduce-task` derives it.
    pub fn label(&self) -> String {
        format!("task {}_{}", self.task, self.number)
    }

    /// The labels of its process, as that selector derives them.
    pub fn labels(self) -> BTreeMap<String, String> {
        let attempt = format!("{}_{}", self.task, self.number);
        let labels = [("attempt", attempt), ("job", self.job), ("task", self.task)];
        labels.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

fn parse(argument: &str) -> Option<Attempt> {
    let parts: Vec<&str> = argument.strip_prefix("attempt_")?.split('_').collect();
    let [cluster, job, kind, task, number] = parts[..] else {
        return None;
    };
    let is_number =
        |text: &&str| (1..20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let known = ["m", "r"].contains(&kind) && [cluster, job, task, number].iter().all(is_number);
    known.then(|| Attempt {
        job: format!("{cluster}_{job}"),
        task: format!("{kind}_{task}"),
        number: number.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::command_line;

    fn parsed(line: &str) -> Option<(String, Vec<String>)> {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let attempt = Attempt::of(&command_line::parse(&command, |_| None))?;
        let label = attempt.label();
        let labels = attempt.labels().into_iter();
        Some((label, labels.map(|(k, v)| format!("{k}={v}")).collect()))
    }

    #[test]
    fn tasks_are_told_apart() {
        let child = "java -Xmx1g org.apache.hadoop.mapred.YarnChild 10.0.1.4 45261";
        let (label, labels) =
            parsed(&format!("{child} attempt_1700000000000_0042_r_000019_1 3")).unwrap();
        assert_eq!(label, "task r_000019_1");
        assert_eq!(
            labels,
            [
                "attempt=r_000019_1",
                "job=1700000000000_0042",
                "task=r_000019"
            ]
        );
        for other in [
            child.to_owned(),
            format!("{child} attempt_1700000000000_0042_m_000001"),
            format!("{child} attempt_1700000000000_0042_m_000001_0_1"),
            format!("{child} attempt_1700000000000_0042_x_000001_0"),
            format!("{child} attempt_1700000000000_0042_m_000001_\u{1b}"),
            format!("{child} attempt_1_1_m_1_{}", "9".repeat(99)),
            "java com.acme.Main attempt_1700000000000_0042_m_000001_0".to_owned(),
        ] {
            assert_eq!(parsed(&other), None, "{other}");
        }
    }
}
