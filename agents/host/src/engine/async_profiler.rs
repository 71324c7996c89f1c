//! async-profiler: its commands, its answers, its output.

use flamegraph::{folded, Limits, Profile, ValueType};

use crate::outcome::Failure;
use crate::protocol::Sampling;

/// The engine's name in a sampling.
pub const NAME: &str = "async-profiler";
/// The profiler stops by itself this long after the asked time, in seconds: should the agent be killed.
const LEASE: u64 = 30;
const MAX_SECONDS: f64 = 86_400.0;
const MAX_FREQUENCY: u32 = 10_000;

/// One way to sample an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The value of `event=` and what follows it.
    arguments: String,
    /// What it is called in the results.
    pub event: String,
    /// What the user should know where this one is used.
    pub note: &'static str,
    /// Whether that makes the result worse than what was asked for.
    pub degraded: bool,
}

/// What is recorded, checked, with the ways to do it in the order in which they are tried.
#[derive(Debug, Clone)]
pub struct Plan {
    pub choices: Vec<Choice>,
    pub frequency: u32,
    pub duration: f64,
    interval: u64,
}

/// What a recording yielded: its profile, how many samples it is made of, and the CPU time they stand for.
pub struct Folded {
    pub profile: Profile,
    pub taken: u64,
    pub cpu_seconds: f64,
}

impl Folded {
    /// Of a profile whose first value is samples, and the second (if any) nanoseconds.
    fn counted(profile: Profile) -> flamegraph::Result<Self> {
        let taken = profile.total(0)?.max(0) as u64;
        let nanoseconds = if profile.values().len() > 1 {
            profile.total(1)?
        } else {
            0
        };
        Ok(Self {
            profile,
            taken,
            cpu_seconds: nanoseconds as f64 / 1e9,
        })
    }
}

impl Plan {
    /// `kernel`: whether the JVM may sample kernel stacks.
    pub fn new(sampling: &Sampling, kernel: bool) -> Result<Self, Failure> {
        check(sampling)?;
        Ok(Self {
            choices: choices(&sampling.event, kernel),
            frequency: sampling.frequency,
            duration: sampling.duration,
            interval: (1e9 / f64::from(sampling.frequency)).round() as u64,
        })
    }

    /// After how many seconds the profiler stops by itself.
    pub fn time_limit(&self) -> u64 {
        self.duration.ceil() as u64 + LEASE
    }

    /// `file` is what the JVM writes should it end, or the time limit pass, before it is told to stop.
    pub fn start(&self, choice: &Choice, file: &str, log: &str) -> String {
        let timeout = self.time_limit();
        let interval = match has_interval(&choice.arguments) {
            true => format!(",interval={}", self.interval),
            false => String::new(),
        };
        let event = &choice.arguments;
        format!("start,event={event}{interval},timeout={timeout},file={file},collapsed,samples,ann,log={log}")
    }

    /// The profile of a recording dumped in both counts.
    pub fn profile(&self, choice: &Choice, samples: &[u8], total: &[u8]) -> Result<Folded, String> {
        let limits = Limits::default();
        let folded = match is_cpu(&choice.arguments) {
            true => folded::read_recording(samples, total, &limits).and_then(Folded::counted),
            false => folded::read(samples, ValueType::samples(), &limits)
                .and_then(Folded::counted)
                .and_then(|counted| {
                    let profile = folded::read(total, value_type(&choice.arguments), &limits)?;
                    Ok(Folded { profile, ..counted })
                }),
        };
        folded.map_err(|error| error.to_string())
    }

    /// The profile of a recording that the JVM's end cut short: only samples were written.
    pub fn profile_of_samples(&self, choice: &Choice, samples: &[u8]) -> Result<Folded, String> {
        let limits = Limits::default();
        let profile = match is_cpu(&choice.arguments) {
            true => folded::read_samples(samples, self.interval as i64, &limits),
            false => folded::read(samples, ValueType::samples(), &limits),
        };
        profile
            .and_then(Folded::counted)
            .map_err(|error| error.to_string())
    }

    /// How many samples a process should have that used this much CPU time; 0 where that does not follow.
    pub fn expected(&self, choice: &Choice, cpu_seconds: f64) -> u64 {
        match is_cpu(&choice.arguments) {
            true => (cpu_seconds * f64::from(self.frequency)).round() as u64,
            false => 0,
        }
    }
}

/// End the recording and write its nanoseconds (or bytes).
pub fn stop(file: &str, log: &str) -> String {
    format!("stop,file={file},collapsed,total,ann,log={log}")
}

/// Write the samples of the recording that was ended. Without `log=`, so that the JVM closes the last log; what
/// is only information (that there were no samples) would then go to the application's output.
pub fn dump(file: &str) -> String {
    format!("dump,file={file},collapsed,samples,ann,loglevel=error")
}

/// Write whether a recording is going on.
pub fn status(file: &str) -> String {
    format!("status,file={file}")
}

/// Whether a status tells of no recording.
pub fn is_idle(status: &str) -> bool {
    status.contains("not active")
}

/// The profiler's own words in a log, without those that only announce.
pub fn complaint(log: &str) -> String {
    let lines = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "Profiling started");
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        // One complaint a thread: the first says it all.
        let kind = line.split("TID").next().unwrap_or(line);
        if told.len() < 8 && !told.iter().any(|other| other.starts_with(kind)) {
            told.push(line);
        }
    }
    told.join(" ").chars().take(600).collect()
}

fn check(sampling: &Sampling) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:*$<>/-@".contains(c);
    if sampling.engine != NAME {
        return Err(Failure::plain(format!(
            "this agent has no engine {:?}, only {NAME}",
            sampling.engine
        )));
    }
    // A comma would begin another argument, such as the name of a file to write.
    if sampling.event.is_empty() || sampling.event.len() > 200 || !sampling.event.chars().all(plain)
    {
        return Err(Failure::new(
            format!("{:?} is no event", sampling.event),
            "name one event, such as cpu",
        ));
    }
    if !(1..=MAX_FREQUENCY).contains(&sampling.frequency) {
        return Err(Failure::plain(format!(
            "{} Hz is not between 1 and {MAX_FREQUENCY}",
            sampling.frequency
        )));
    }
    if !(sampling.duration > 0.0 && sampling.duration <= MAX_SECONDS) {
        return Err(Failure::plain(format!(
            "{} s is not between 0 and {MAX_SECONDS}",
            sampling.duration
        )));
    }
    Ok(())
}

/// `cpu` itself is never asked for: where the kernel forbids it, async-profiler silently takes a timer in its place
/// that the kernel's own ticks slow down. Named ways fail aloud, and the next one is tried.
fn choices(event: &str, kernel: bool) -> Vec<Choice> {
    let choice = |arguments: &str, event: &str, note, degraded| Choice {
        arguments: arguments.to_owned(),
        event: event.to_owned(),
        note,
        degraded,
    };
    if event != "cpu" {
        return vec![choice(event, event, "", false)];
    }
    let user =
        "without kernel frames: the kernel does not let this JVM sample them (perf_event_paranoid)";
    let timer =
        "perf events cannot be used for this JVM; timers lose samples above the kernel's tick rate";
    let mut choices = vec![
        choice("cpu-clock,alluser", "cpu-clock,alluser", user, false),
        choice("ctimer", "ctimer", timer, true),
        choice("itimer", "itimer", timer, true),
    ];
    if kernel {
        choices.insert(0, choice("cpu-clock", "cpu", "", false));
    }
    choices
}

fn first(arguments: &str) -> &str {
    arguments.split(',').next().unwrap_or(arguments)
}

fn is_cpu(arguments: &str) -> bool {
    matches!(first(arguments), "cpu-clock" | "ctimer" | "itimer")
}

/// Other events count something else than time; what their interval means is left to the profiler.
fn has_interval(arguments: &str) -> bool {
    is_cpu(arguments) || first(arguments) == "wall"
}

fn value_type(arguments: &str) -> ValueType {
    let event = first(arguments);
    let unit = match event {
        "wall" | "lock" => "nanoseconds",
        "alloc" | "nativemem" => "bytes",
        _ => "count",
    };
    ValueType::new(event, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(event: &str) -> Sampling {
        Sampling {
            engine: NAME.into(),
            event: event.into(),
            frequency: 300,
            duration: 4.2,
        }
    }

    #[test]
    fn the_chain_of_cpu() {
        let events = |kernel| -> Vec<String> {
            let plan = Plan::new(&sampling("cpu"), kernel).unwrap();
            plan.choices
                .into_iter()
                .map(|choice| choice.event)
                .collect()
        };
        assert_eq!(
            events(true),
            ["cpu", "cpu-clock,alluser", "ctimer", "itimer"]
        );
        assert_eq!(events(false), ["cpu-clock,alluser", "ctimer", "itimer"]);
    }

    #[test]
    fn commands() {
        let plan = Plan::new(&sampling("cpu"), true).unwrap();
        assert_eq!(
            plan.start(&plan.choices[0], "/f", "/l"),
            "start,event=cpu-clock,interval=3333333,timeout=35,file=/f,collapsed,samples,ann,log=/l"
        );
        let alloc = Plan::new(&sampling("alloc"), true).unwrap();
        assert!(!alloc
            .start(&alloc.choices[0], "/f", "/l")
            .contains("interval"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Plan::new(&sampling("cpu,file=/etc/x"), true).is_err());
        assert!(Plan::new(&sampling(""), true).is_err());
        assert!(Plan::new(
            &Sampling {
                frequency: 0,
                ..sampling("cpu")
            },
            true
        )
        .is_err());
        assert!(Plan::new(
            &Sampling {
                duration: f64::NAN,
                ..sampling("cpu")
            },
            true
        )
        .is_err());
        assert!(Plan::new(
            &Sampling {
                engine: "perf".into(),
                ..sampling("cpu")
            },
            true
        )
        .is_err());
    }

    #[test]
    fn a_log_is_told_once() {
        let log = "[WARN] perf_event_open for TID 1 failed: No\n[WARN] perf_event_open for TID 2 failed: No\n[ERROR] Perf events unavailable\n";
        assert_eq!(
            complaint(log),
            "[WARN] perf_event_open for TID 1 failed: No [ERROR] Perf events unavailable"
        );
        assert_eq!(complaint("Profiling started\n"), "");
    }
}
