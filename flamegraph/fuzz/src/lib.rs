//! The fuzz targets. What every reader's target does: read, and when that works, write and read again: what comes back
//! is the same profile.

mod coming_back;
pub mod kept;
mod live;
mod parts;
mod readers;

/// What a target does with an input.
type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 19] = [
    ("jfr", readers::jfr),
    ("perf_live", live::perf_live),
    ("compact", readers::compact),
    ("jit_map", parts::jit_map),
    ("symbols", parts::symbols),
    ("pprof", readers::pprof),
    ("perf_data", readers::perf_data),
    ("folded", readers::folded),
    ("detected", readers::detected),
    ("speedscope", readers::speedscope),
    ("async_html", readers::async_html),
    ("firefox", readers::firefox),
    ("bpf", readers::bpf),
    ("otlp", readers::otlp),
    ("jemalloc", readers::jemalloc),
    ("thread_dump", readers::thread_dump),
    ("perf_script", readers::perf_script),
    ("rules", parts::rules),
    ("mangled", parts::mangled),
];

/// Does what a target does with an input.
pub fn run(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    found.expect("a target of this list").1(bytes);
}
