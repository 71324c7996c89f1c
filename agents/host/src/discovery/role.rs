//! What a JVM is for its job, by its own arguments: a map or reduce task, or a Spark executor. All of a kind have the same
//! main class.

use std::collections::BTreeMap;

use crate::jvm::command_line::Launch;

const TASK: &str = "org.apache.hadoop.mapred.YarnChild";
const EXECUTORS: [&str; 3] = [
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
];

#[derive(Debug, PartialEq, Eq)]
pub enum Role {
    /// The parts of `attempt_1700000000000_0042_m_000001_0`.
    Task {
        job: String,
        task: String,
        number: String,
    },
    Executor {
        id: String,
    },
}

impl Role {
    /// None: the JVM is neither.
    pub fn of(launch: &Launch) -> Option<Self> {
        let mut arguments = launch.arguments.iter();
        match launch.main_class() {
            TASK => arguments.find_map(|argument| task(argument)),
            main if EXECUTORS.contains(&main) => {
                arguments.find(|argument| *argument == "--executor-id")?;
                let id = arguments.next().filter(|id| is_number(id))?.clone();
                Some(Self::Executor { id })
            }
            _ => None,
        }
    }

    /// The short name of its process, as the selectors `mapreduce-task` and `spark-executor` derive it.
    pub fn label(&self) -> String {
        match self {
            Self::Task { task, number, .. } => format!("task {task}_{number}"),
            Self::Executor { id } => format!("executor {id}"),
        }
    }

    /// The labels of its process, as those selectors derive them.
    pub fn labels(self) -> BTreeMap<String, String> {
        let labels = match self {
            Self::Task { job, task, number } => {
                let attempt = format!("{task}_{number}");
                vec![("attempt", attempt), ("job", job), ("task", task)]
            }
            Self::Executor { id } => vec![("executor", id)],
        };
        let labels = labels.into_iter();
        labels
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn task(argument: &str) -> Option<Role> {
    let parts: Vec<&str> = argument.strip_prefix("attempt_")?.split('_').collect();
    let [cluster, job, kind, task, number] = parts[..] else {
        return None;
    };
    let known =
        ["m", "r"].contains(&kind) && [cluster, job, task, number].into_iter().all(is_number);
    known.then(|| Role::Task {
        job: format!("{cluster}_{job}"),
        task: format!("{kind}_{task}"),
        number: number.to_owned(),
    })
}

fn is_number(text: &str) -> bool {
    (1..20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::command_line;

    fn parsed(line: &str) -> Option<(String, Vec<String>)> {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let role = Role::of(&command_line::parse(&command, |_| None))?;
        let label = role.label();
        let labels = role.labels().into_iter();
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
    #[test]
    fn executors_are_told_apart() {
        let backend = "java org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --driver-url spark://x:1";
        let (label, labels) = parsed(&format!("{backend} --executor-id 4 --cores 1")).unwrap();
        assert_eq!(
            (&*label, labels),
            ("executor 4", vec!["executor=4".to_owned()])
        );
        for other in [
            backend.to_owned(),
            format!("{backend} --executor-id"),
            format!("{backend} --executor-id x4"),
            "java com.acme.Main --executor-id 4".to_owned(),
        ] {
            assert_eq!(parsed(&other), None, "{other}");
        }
    }
}
