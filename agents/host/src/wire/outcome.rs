//! The ledger's words: how it went for a process, and why.

use std::collections::BTreeMap;

use serde::Serialize;

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Degraded,
    Failed,
}

/// How far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Prepare,
    Start,
    Record,
    Fetch,
}

/// What ended a recording before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The end of its process.
    Process,
    /// We did, while the process went on.
    Cut,
}

/// One line of the ledger.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    pub pid: Option<i32>,
    pub status: Status,
    pub stage: Stage,
    pub reason: String,
    pub remedy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// For how long was recorded, where that ended before its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Its reasons one by one, where a recording has several things to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Reason>,
}

/// One reason of an outcome. `code` and `parameters` are for programs, the texts are for people.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    pub code: &'static str,
    pub reason: String,
    pub remedy: String,
    pub parameters: Parameters,
}

pub type Parameters = BTreeMap<&'static str, serde_json::Value>;

/// Why something could not be done, and what to do next. It knows neither process nor stage.
#[derive(Debug, Clone)]
pub struct Failure {
    pub reason: String,
    pub remedy: String,
}

impl Failure {
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// A failure for which there is nothing better to advise than to read the reason.
    pub fn plain(reason: impl Into<String>) -> Self {
        Self::new(reason, "")
    }

    /// Several as one: each reason once, and each remedy.
    pub fn all(failures: impl IntoIterator<Item = Self>) -> Self {
        let (reasons, remedies): (Vec<_>, Vec<_>) = failures
            .into_iter()
            .map(|failure| (failure.reason, failure.remedy))
            .unzip();
        Self::new(each_once(reasons), each_once(remedies))
    }

    pub fn at(self, pid: i32, stage: Stage) -> Outcome {
        Outcome {
            pid: Some(pid),
            status: Status::Failed,
            stage,
            reason: self.reason,
            remedy: self.remedy,
            ended: None,
            seconds: None,
            notes: Vec::new(),
        }
    }
}

/// Words one after the other, those that come again left out.
pub fn each_once(words: impl IntoIterator<Item = String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for word in words {
        if !word.is_empty() && !told.contains(&word) {
            told.push(word);
        }
    }
    told.join("; ")
}
