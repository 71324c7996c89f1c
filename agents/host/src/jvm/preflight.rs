//! Reasons not to profile a JVM, found before it is touched.

use std::path::Path;
use std::sync::Arc;

use crate::jvm::command_line;
use crate::jvm::hsperf;
use crate::jvm::loaded::Loaded;
use crate::os::free_space::Memory;
use crate::os::host::kernel_setting;
use crate::os::proc::maps::{file_name, without_mark, Mapped};
use crate::os::proc::named::Named;
use crate::os::proc::split_zero;
use crate::os::proc::target::Target;
use crate::staging::folders::{is_ours, RECORDING, RUN_FOLDER};
use crate::wire::outcome::{Code, Failure};

const ASYNC_PROFILER: &str = "libasyncProfiler";
/// Agents that sample too: two in one JVM have crashed it.
const OTHER_PROFILERS: [(&str, &str); 5] = [
    ("libyjpagent", "YourKit"),
    ("libjprofilerti", "JProfiler"),
    ("liblagent", "honest-profiler"),
    ("libjavaProfiler", "Datadog's profiler"),
    ("libgp-collector", "Oracle Developer Studio"),
];

pub struct Findings {
    /// Whether it is a HotSpot JVM, or may be one, if the agent may not read its map.
    pub is_jvm: bool,
    pub library: Option<String>,
    /// Why no profiler may be loaded into it.
    pub refusal: Option<Failure>,
    launched: Launched,
    pub loaded: Loaded,
    pub performance_data: Vec<Mapped>,
    /// Paths of async-profiler libraries that hprofiler sessions loaded.
    pub ours: Vec<String>,
    /// Whether one of these has its recording open. None: the agent cannot see that, or there are none.
    pub writes_recording: Option<bool>,
    /// Paths of async-profiler libraries that other tools loaded.
    pub foreign: Vec<String>,
    /// Whether any profiler samples it.
    pub sampled: bool,
    /// Whether it may use all perf events, whatever the settings are.
    pub privileged: bool,
    /// Whether the kernel lets this JVM sample kernel stacks.
    pub kernel: bool,
    pub memory: Arc<Memory>,
}

struct Launched {
    environment: String,
    command: Vec<String>,
}

/// To be called before the thread takes the process's user: some of this only root may read.
pub fn look(target: &Target) -> Findings {
    let seen = Loaded::of(target);
    let readable = seen.is_some();
    let loaded = seen.unwrap_or_default();
    let libraries = loaded.paths();
    let library = libraries
        .iter()
        .find(|path| file_name(path) == "libjvm.so")
        .cloned();
    let refusal = refuse_libraries(target.pid, &libraries);
    let async_profilers = libraries
        .into_iter()
        .filter(|path| file_name(path).starts_with(ASYNC_PROFILER));
    // The kernel ignores capabilities in a user namespace here.
    let privileged = target.status.may_profile_kernel() && target.has_users_of_host();
    let (ours, foreign): (Vec<String>, Vec<String>) =
        async_profilers.partition(|path| is_ours(path));
    Findings {
        is_jvm: library.is_some() || !readable,
        library,
        refusal: refusal.err(),
        launched: Launched::read(target),
        loaded,
        performance_data: target
            .mapped(|mapping| hsperf::is_data(&mapping.file.path))
            .unwrap_or_default(),
        writes_recording: (!ours.is_empty())
            .then(|| writes_recording(target))
            .flatten(),
        ours,
        foreign,
        sampled: is_sampled(target),
        privileged,
        kernel: privileged || kernel_setting("perf_event_paranoid").is_some_and(|level| level <= 1),
        memory: Arc::new(Memory::of(target)),
    }
}

fn is_openj9(path: &str) -> bool {
    file_name(path).starts_with("libj9vm")
}

fn refuse_libraries(pid: i32, libraries: &[String]) -> Result<(), Failure> {
    for path in libraries {
        let name = file_name(path);
        if is_openj9(path) {
            let reason =
                format!("process {pid} is an OpenJ9 JVM, which async-profiler cannot profile");
            let remedy = "run the application on a HotSpot JVM";
            return Err(Failure::new(reason, remedy).coded(Code::Openj9));
        }
        let mut others = OTHER_PROFILERS.iter();
        if let Some((_, other)) = others.find(|(prefix, _)| name.starts_with(prefix)) {
            return Err(Failure::new(
                format!("{other} ({path}) is loaded in process {pid}: two profilers in one JVM can crash it"),
                format!("restart the JVM without {other}"),
            )
            .coded(Code::OtherProfiler));
        }
    }
    Ok(())
}

impl Findings {
    pub fn is_openj9(&self) -> bool {
        self.loaded.paths().iter().any(|path| is_openj9(path))
    }

    /// The options in the JVM's order: a later one overrides. The values in force, which it publishes, come last. The
    /// calling thread must have no more rights than the JVM's user, since files of arguments are read.
    pub fn options(&self, named: &Named) -> Vec<String> {
        let mut options = self.launched.options(named);
        options.extend(hsperf::options(named, &self.performance_data));
        options
    }

    /// Empty if it is unknown. The calling thread must have no more rights than the JVM's user.
    pub fn main_class(&self, named: &Named) -> String {
        let launch = command_line::parse(&self.launched.command, |name| named.text(name));
        launch.main_class().to_owned()
    }
}

impl Launched {
    fn read(target: &Target) -> Self {
        let text = |name| target.read(name, 4 << 20).unwrap_or_default();
        Self {
            environment: text("environ"),
            command: split_zero(text("cmdline").as_bytes()),
        }
    }

    fn options(&self, named: &Named) -> Vec<String> {
        let launch = command_line::parse(&self.command, |name| named.text(name));
        [
            self.variable("JAVA_TOOL_OPTIONS"),
            self.variable("JDK_JAVA_OPTIONS"),
            launch.options,
            self.variable("_JAVA_OPTIONS"),
        ]
        .concat()
    }

    fn variable(&self, name: &str) -> Vec<String> {
        let mut pairs = self.environment.split('\0');
        let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let words = value.unwrap_or_default().split_ascii_whitespace();
        words.map(str::to_owned).collect()
    }
}

/// Refuse a JVM whose options forbid attaching (it would dump its threads on its own output), or loading a library.
pub fn refuse_disabled(pid: i32, options: &[String]) -> Result<(), Failure> {
    refuse_no_attach(pid, options)?;
    match last_set(options, "EnableDynamicAgentLoading") {
        Some(false) => Err(disabled(pid, "-XX:-EnableDynamicAgentLoading")),
        _ => Ok(()),
    }
}

/// Refuse a JVM that takes no commands.
pub fn refuse_no_attach(pid: i32, options: &[String]) -> Result<(), Failure> {
    match last_set(options, "DisableAttachMechanism") {
        Some(true) => Err(disabled(pid, "-XX:+DisableAttachMechanism")),
        _ => Ok(()),
    }
}

fn disabled(pid: i32, option: &str) -> Failure {
    Failure::new(
        format!("process {pid} was started with {option}: it does not allow an attach"),
        format!("restart the JVM without {option}"),
    )
    .coded(Code::AttachDisabled)
}

pub fn last_set(options: &[String], flag: &str) -> Option<bool> {
    options.iter().rev().find_map(|option| {
        match option.strip_prefix("-XX:")?.split_at_checked(1)? {
            ("+", name) if name == flag => Some(true),
            ("-", name) if name == flag => Some(false),
            _ => None,
        }
    })
}

/// async-profiler has its recording open while it records. None: the agent cannot see that. To be called before the
/// thread takes the process's user and files.
pub fn writes_recording(target: &Target) -> Option<bool> {
    for file in target.open_files()? {
        if is_recording(&file.ok()?) {
            return Some(true);
        }
    }
    Some(false)
}

fn is_recording(link: &str) -> bool {
    let path = Path::new(without_mark(link));
    let folder = path.parent().and_then(Path::file_name);
    let of_session = folder.is_some_and(|name| name.to_string_lossy().starts_with(RUN_FOLDER));
    of_session && path.extension().is_some_and(|kind| kind == RECORDING)
}

const OF_PERF_EVENTS: &str = "anon_inode:[perf_event]";
/// The text of a timer that signals a thread by its CPU time. async-profiler uses such timers if it has no perf events.
/// Applications' own timers use wall-clock time.
const OF_THREAD: &str = "notify: signal/tid.";
const BY_CPU_TIME: &str = "ClockID: -";

/// Whether a profiler samples the process, by perf events of its own or by timers of its threads. To be called before
/// the thread takes the process's user: some of this only root may see.
fn is_sampled(target: &Target) -> bool {
    let timers = target.read("timers", 1 << 20).unwrap_or_default();
    let mut files = target.open_files().into_iter().flatten().flatten();
    has_profilers_timer(&timers) || files.any(|file| file == OF_PERF_EVENTS)
}

/// In `/proc/PID/timers`, where each timer begins with its number.
pub fn has_profilers_timer(timers: &str) -> bool {
    let mut signals_thread = false;
    timers.lines().any(|line| {
        match line {
            line if line.starts_with("ID:") => signals_thread = false,
            line if line.starts_with(OF_THREAD) => signals_thread = true,
            _ => {}
        }
        signals_thread && line.starts_with(BY_CPU_TIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &str) -> bool {
        let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
        refuse_disabled(1, &options).is_err()
    }

    #[test]
    fn the_last_setting_of_a_flag_counts() {
        assert!(refused("-Xmx1g -XX:+DisableAttachMechanism"));
        assert!(!refused(
            "-XX:+DisableAttachMechanism -XX:-DisableAttachMechanism"
        ));
        assert!(refused("-XX:-EnableDynamicAgentLoading"));
        assert!(!refused(
            "-XX:+EnableDynamicAgentLoading -XX: -Dx=-XX:+DisableAttachMechanism"
        ));
    }

    #[test]
    fn whose_c_library_it_is() {
        use crate::jvm::loaded::is_musl;
        for name in ["ld-musl-x86_64.so.1", "libc.musl-aarch64.so.1", "libc.so"] {
            assert!(is_musl(name), "{name}");
        }
        assert!(!is_musl("libc.so.6") && !is_musl("ld-linux-x86-64.so.2"));
    }

    #[test]
    fn recordings_are_known_by_name_and_folder() {
        for (link, want) in [
            ("/tmp/.hprofiler-run-1-2-0/4026531836-7-9.jfr", true),
            (
                "/tmp/.hprofiler-run-1-2-0/4026531836-7-9.jfr (deleted)",
                true,
            ),
            ("/tmp/.hprofiler-run-1-2-0/4026531836-7-9.log", false),
            ("/tmp/mine/app.jfr", false),
            ("socket:[4711]", false),
        ] {
            assert_eq!(is_recording(link), want, "{link}");
        }
    }

    #[test]
    fn timers_of_applications_are_no_profilers() {
        let timer = |notify: &str, clock: i32| {
            format!("ID: 0\nsignal: 27/0000000000000000\nnotify: {notify}\nClockID: {clock}\n")
        };
        let own = timer("signal/tid.12", 1) + &timer("signal/pid.12", -102);
        assert!(!has_profilers_timer(&own) && !has_profilers_timer(""));
        assert!(has_profilers_timer(&(own + &timer("signal/tid.12", -98))));
    }
}
