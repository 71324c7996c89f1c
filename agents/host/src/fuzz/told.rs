//! What the kernel, JVMs and programs say.

use crate::discovery::containers::Containers;
use crate::discovery::listening;
use crate::engine::async_profiler::plan;
use crate::engine::perf::{notes, program, recording};
use crate::jvm::attach;
use crate::jvm::hsperf as data;
use crate::jvm::preflight;
use crate::os::proc::{maps, stat, status, users};

const ID: &str = "container_e17_1700000000000_0042_01_000003";
const POD: &str = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100";

/// Files of `/proc`, with names that processes chose.
pub fn proc_texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    stat::parse(&text);
    status::parse(1, &text);
    users::parse(&text);
    preflight::has_profilers_timer(&text);
    listening::listeners(&text, 8080).for_each(drop);
    let files = maps::files(bytes, |mapping| {
        !maps::file_name(&mapping.file.path).is_empty()
    });
    assert!(files.is_some_and(|files| files.len() <= 1000));
    let known = Containers::new(vec![ID.to_owned(), POD.to_owned()]);
    let told = known.as_ref().ok();
    let told = told.and_then(|known| known.membership(&Default::default(), &text, &[]));
    assert!(told.is_none_or(|home| text.contains(&home.id)));
}

/// A JVM's answer, and the words of async-profiler and perf.
pub fn answers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    attach::parse_reply(&text);
    plan::is_idle(&text);
    assert!(plan::complaint(&text).chars().count() <= 600);
    assert!(notes::failure(&text, "cpu").reason.chars().count() <= 500);
    program::version(&text);
    let followed = |step: usize| {
        let mut progress = recording::Progress::default();
        let parts = bytes.chunks(step);
        parts.for_each(|part| progress.follow(part));
        progress
    };
    assert!(followed(3) == followed(bytes.len().max(1)));
}

pub fn hsperf(bytes: &[u8]) {
    for name in ["java.rt.vmArgs", "java.property.java.version", "", "a"] {
        let text = data::text_entry(bytes, name);
        assert!(text.is_none_or(|text| text.len() <= 3 * bytes.len()));
        data::long_entry(bytes, name);
    }
}
