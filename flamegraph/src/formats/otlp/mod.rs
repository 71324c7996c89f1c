//! OTLP profiles, the signal of OpenTelemetry: `ProfilesData` of opentelemetry-proto 1.10 (v1development).
//!
//! One profile for each value, because each has one sample type. All share a dictionary, whose tables begin with an
//! entry without content: index 0 means none. Later versions may number fields otherwise, so the version is part of
//! the format's name. Version 1.9, which async-profiler 4.4 writes, differs only in the fields of samples, and is read.

mod messages;
#[cfg(feature = "formats")]
mod read;
mod write;

#[cfg(feature = "formats")]
pub(crate) use read::{detect, read_input};

/// Our labels that have a name in OpenTelemetry's conventions for resources.
const RESOURCE_NAMES: [(&str, &str); 3] = [
    ("host", "host.name"),
    ("pid", "process.pid"),
    ("process", "service.name"),
];
