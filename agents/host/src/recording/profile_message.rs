//! Builds what the coordinator receives of a recording: profile messages and the outcome.

use std::time::Duration;

use flamegraph::{LeftOut, Profile};

use crate::engine::api::{EventProfile, Job, Note, USER_CODE};
use crate::os::files::sha256;
use crate::recording::clock::Clock;
use crate::resources::folding::Waiting;
use crate::wire::events::{ProfileHead, Samples};
use crate::wire::outcome::{each_once, Code, Failure, Outcome, Parameters, Stage, Status};

/// A result with a smaller share of the expected samples is degraded.
const ENOUGH: f64 = 0.8;
/// With fewer expected samples the share is not judged.
const FEW: u64 = 20;

/// The CPU time of the samples; 0 if it was not recorded.
pub fn cpu_seconds(profiles: &[EventProfile]) -> f64 {
    let cpu = profiles.iter().find(|recorded| recorded.event == "cpu");
    let nanoseconds = cpu.and_then(|recorded| recorded.profile.total(1).ok());
    nanoseconds.unwrap_or(0) as f64 / 1e9
}

pub fn build_profile_message(
    job: &Job,
    engine: &'static str,
    clock: &Clock,
    attached: Option<Duration>,
    mut recorded: EventProfile,
    more: bool,
) -> Result<(ProfileHead, Waiting), Failure> {
    let profile = scale_to_cpu_time(recorded.profile, &recorded.event, clock);
    recorded.profile = profile.map_err(|error| Failure::plain(error.to_string()))?;
    label(job, &mut recorded.profile);
    correct_clock(&mut recorded.profile, job.shared.clock_offset);
    let mut bytes = Vec::new();
    let written = recorded.profile.write_compact(&mut bytes);
    written.map_err(|error| Failure::plain(format!("the profile cannot be written: {error}")))?;
    let expected = expected(&recorded, clock);
    let head = ProfileHead {
        pid: job.chosen.pid,
        event: recorded.event,
        engine,
        source: recorded.source,
        interval: recorded.interval,
        seconds: clock.seconds,
        cpu_seconds: clock.cpu_seconds,
        resident_bytes: clock.resident_bytes,
        attach_seconds: attached.map(|time| time.as_secs_f64()),
        callers_unsure: recorded.callers_unsure,
        samples: Samples {
            expected,
            taken: recorded.taken,
            lost: expected.saturating_sub(recorded.taken),
        },
        more,
        sha256: sha256(&bytes),
        size: bytes.len(),
    };
    Ok((head, job.shared.folding.wait(bytes)))
}

/// The samples of the CPU time that the source can see.
fn expected(recorded: &EventProfile, clock: &Clock) -> u64 {
    let seconds = match (recorded.event.as_str(), recorded.source.as_str()) {
        ("cpu", USER_CODE) => clock.user_seconds,
        ("cpu", _) => clock.cpu_seconds,
        _ => 0.0,
    };
    (seconds * 1e9 / recorded.interval.max(1) as f64).round() as u64
}

/// Every source loses some CPU time: timers most, perf events the time of taking a sample, those without the kernel all
/// kernel time. The process's CPU time by the kernel's account is spread over the stacks.
fn scale_to_cpu_time(profile: Profile, event: &str, clock: &Clock) -> flamegraph::Result<Profile> {
    let nanoseconds = (clock.cpu_seconds * 1e9) as i64;
    match event {
        "cpu" if nanoseconds > 0 && profile.total(1)? > 0 => profile.with_total(1, nanoseconds),
        _ => Ok(profile),
    }
}

/// Times are those of the coordinator's clock.
fn correct_clock(profile: &mut Profile, ahead: i64) {
    if let Some(mut times) = profile.times().cloned() {
        times.start = times.start.saturating_sub(ahead);
        profile.set_times(Some(times));
    }
}

/// Labels that are certain come last: they replace those that the selector derived.
fn label(job: &Job, profile: &mut Profile) {
    for (name, value) in &job.chosen.labels {
        profile.set_label(name, value);
    }
    profile.set_label("host", &job.shared.host);
    profile.set_label("pid", job.chosen.pid.to_string());
    profile.set_label("process", &job.chosen.label);
}

/// A note about what the times of samples do not say, because there would be too many of them.
pub fn left_out_note(recorded: &EventProfile) -> Option<Note> {
    let LeftOut { slices, bands } = recorded.profile.times()?.left_out();
    let what = match (slices, bands) {
        (true, true) => "slices and durations",
        (true, false) => "slices",
        (false, true) => "durations",
        (false, false) => return None,
    };
    let event = &recorded.event;
    let why = Failure::new(
        format!(
            "{what} of {event} samples are not known: there are too many for the agent's memory"
        ),
        "record for a shorter time",
    );
    let why = why.coded(Code::TimesIncomplete);
    Some(Note::of(
        why.with("event", event.clone()).with("left_out", what),
    ))
}

/// A process that used this much CPU time, in seconds, must have samples, however many threads used it.
const MUCH: f64 = 1.0;

/// A note about the number of samples of an event. `named`: there are several events. Each of `threads` may have used
/// less CPU time than one sample stands for, so that many may be missing.
pub fn sample_count_note(
    event: &str,
    samples: Samples,
    cpu_seconds: f64,
    named: bool,
    threads: u64,
) -> Option<Note> {
    let Samples {
        expected, taken, ..
    } = samples;
    let what = match named {
        true => format!("{event} samples"),
        false => "samples".to_owned(),
    };
    let few = expected >= FEW && (taken as f64) < expected as f64 * ENOUGH;
    let by_threads = expected <= threads && (taken > 0 || cpu_seconds < MUCH);
    if few && !by_threads {
        return Some(
            Note::degraded(format!("took {taken} of {expected} {what}"))
                .coded(Code::SamplesMissing)
                .with("event", event)
                .with("taken", taken)
                .with("expected", expected),
        );
    }
    if taken > 0 {
        return None;
    }
    let used = format!(": the process used {cpu_seconds:.2} s of CPU time");
    let why = if event == "cpu" { used.as_str() } else { "" };
    Some(
        Note::plain(format!("no {what}{why}"))
            .coded(Code::NoSamples)
            .with("event", event),
    )
}

/// The status of a result, and the remedies. A result of another engine than the first may be good, with a remedy for
/// the first.
pub fn build_outcome(pid: i32, notes: Vec<Note>) -> Outcome {
    let degraded = notes.iter().any(|note| note.degraded);
    let main = match degraded {
        true => notes.iter().find(|note| note.degraded),
        false => notes.first(),
    };
    let (code, parameters) = main.map_or((Code::Recorded, Parameters::new()), |note| {
        (note.code, note.parameters.clone())
    });
    let remarks = remarks(notes, degraded);
    Outcome {
        pid: Some(pid),
        status: match degraded {
            true => Status::Degraded,
            false => Status::Ok,
        },
        stage: Stage::Record,
        code,
        parameters,
        reason: each_once(remarks.iter().map(|one| one.reason.clone())),
        remedy: each_once(remarks.iter().map(|one| one.remedy.clone())),
        notes: remarks,
        ended: None,
        seconds: None,
    }
}

/// Each failure once. The common cause of several notes is in the first of them. A good result has only remedies for a
/// better engine, and for figures that are too low.
fn remarks(notes: Vec<Note>, degraded: bool) -> Vec<Failure> {
    let mut known: Vec<Failure> = Vec::new();
    let mut remarks: Vec<Failure> = Vec::new();
    for note in notes {
        let too_low = note.code == Code::LargeObjectsMissed;
        let wanted = degraded || note.cause.is_some() || too_low;
        let new = note.cause.filter(|cause| !known.contains(cause));
        let remark = Failure {
            code: note.code,
            parameters: note.parameters,
            reason: match &new {
                Some(cause) => format!("{}: {}", note.text, cause.reason),
                None => note.text,
            },
            remedy: if wanted { note.remedy } else { String::new() },
        };
        known.extend(new);
        if !remark.reason.is_empty() && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use flamegraph::{Row, TimesBuilder};

    fn samples(expected: u64, taken: u64) -> Samples {
        Samples {
            expected,
            taken,
            lost: expected.saturating_sub(taken),
        }
    }

    #[test]
    fn numbers_of_samples_that_are_worth_a_word() {
        let threads = 30;
        let missing = |text| Some((Code::SamplesMissing, text, true));
        let none = |text| Some((Code::NoSamples, text, false));
        for ((event, samples), named, want) in [
            (("cpu", samples(100, 95)), true, None),
            (("cpu", samples(10, 1)), true, None),
            (("cpu", samples(30, 1)), true, None),
            (
                ("cpu", samples(31, 1)),
                true,
                missing("took 1 of 31 cpu samples"),
            ),
            (
                ("cpu", samples(100, 50)),
                true,
                missing("took 50 of 100 cpu samples"),
            ),
            (
                ("cpu", samples(100, 50)),
                false,
                missing("took 50 of 100 samples"),
            ),
            (("lock", samples(0, 0)), true, none("no lock samples")),
            (
                ("cpu", samples(0, 0)),
                false,
                none("no samples: the process used 0.50 s of CPU time"),
            ),
        ] {
            let note = sample_count_note(event, samples, 0.5, named, threads);
            let got = note
                .as_ref()
                .map(|note| (note.code, &*note.text, note.degraded));
            assert_eq!(got, want);
        }
        let note = sample_count_note("cpu", samples(30, 0), 3.0, true, threads).unwrap();
        assert!(note.degraded);
        let parameters = Parameters::from([
            ("event", "cpu".into()),
            ("taken", 0.into()),
            ("expected", 30.into()),
        ]);
        assert_eq!(note.parameters, parameters);
    }

    #[test]
    fn what_times_do_not_say_is_a_note() {
        let mut builder = TimesBuilder::new(8, 1);
        for slice in 0..64 {
            let row = Row {
                node: 0,
                slice,
                samples: 1,
                ..Row::default()
            };
            builder.add(0, 0, row);
        }
        let mut profile = Profile::new(Vec::new());
        profile.set_times(Some(builder.times(0, 0, Vec::new(), Some)));
        let recorded = EventProfile {
            event: "cpu".to_owned(),
            source: "perf_events".to_owned(),
            interval: 1,
            profile,
            taken: 64,
            callers_unsure: false,
        };
        let note = left_out_note(&recorded).unwrap();
        assert!(note.degraded && note.text.starts_with("slices of cpu samples"));
        assert_eq!(note.parameters["left_out"], "slices");
    }

    #[test]
    fn an_outcome_has_the_code_of_what_made_it_worse() {
        let no_attach = Failure::new("no attach", "restart it").coded(Code::AttachDisabled);
        let notes = vec![
            Note::plain("not by x").because(no_attach),
            Note::degraded("half")
                .coded(Code::SamplesLost)
                .with("share", 0.5),
        ];
        let outcome = build_outcome(7, notes);
        assert_eq!(outcome.code, Code::SamplesLost);
        assert_eq!(outcome.parameters["share"], 0.5);
        let codes: Vec<Code> = outcome.notes.iter().map(|note| note.code).collect();
        assert_eq!(codes, [Code::AttachDisabled, Code::SamplesLost]);
        assert_eq!(build_outcome(7, vec![]).code, Code::Recorded);
    }

    #[test]
    fn reasons_and_remedies_appear_once_each() {
        let no_attach = || Failure::new("it takes no profiler", "restart it");
        let notes = vec![
            Note::plain("not by x").because(no_attach()),
            Note::of(Failure::new("no alloc", "use x")),
            Note::degraded("no names").because(no_attach()),
            Note::plain("perf 6.1"),
            Note::plain("perf 6.1"),
            Note::plain("perf 6.1").coded(Code::PerfVersion),
        ];
        let outcome = build_outcome(7, notes);
        let reason = "not by x: it takes no profiler; no alloc; no names; perf 6.1";
        assert_eq!(outcome.reason, reason);
        assert_eq!(outcome.remedy, "restart it; use x");
        assert_eq!(outcome.notes.len(), 5, "another code is another note");
        let noted = |code, remedy: &str| Note {
            remedy: remedy.to_owned(),
            ..Note::plain("rough").coded(code)
        };
        let notes = vec![
            Note::plain("not by x").because(no_attach()),
            noted(Code::SamplerSlow, "wait"),
            noted(Code::LargeObjectsMissed, "sample more"),
        ];
        let well = build_outcome(7, notes);
        let told = "restart it; sample more";
        assert_eq!((well.status, &*well.remedy), (Status::Ok, told));
    }
}
