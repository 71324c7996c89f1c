//! Where to search for symbols.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where to search for the symbols of a perf.data file. The default is this machine, as `perf script` does.
#[derive(Clone, Debug)]
pub struct SymbolOptions {
    /// The folder under which programs, libraries and `usr/lib/debug` are: `/`.
    pub root: PathBuf,
    /// Where to find the root folders of processes that still run: `/proc`.
    pub process_root: Option<PathBuf>,
    /// Folders with `perf-PID.map`: `/tmp`.
    pub perf_maps: Vec<PathBuf>,
    /// perf's cache of files by build id: `~/.debug`.
    pub build_id_cache: Option<PathBuf>,
    /// The symbols of the running kernel: `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The text of `kallsyms`, read by a caller who is allowed to. It takes precedence.
    pub kallsyms_text: Option<Arc<[u8]>>,
    /// Most bytes of memory for symbols, and most bytes read of each file.
    pub memory: usize,
    /// Whether symbols are still wanted.
    pub go_on: GoOn,
    /// How to open files, if not as this process opens them.
    pub open: Option<Open>,
}

/// A callback that opens a regular file by its path, for a caller who reads what other users named.
#[derive(Clone)]
pub struct Open(Arc<OpenFile>);

type OpenFile = dyn Fn(&Path) -> Option<File> + Send + Sync;

impl Open {
    /// Wraps a callback.
    pub fn new(open: impl Fn(&Path) -> Option<File> + Send + Sync + 'static) -> Open {
        Open(Arc::new(open))
    }

    pub(crate) fn file(&self, path: &Path) -> Option<File> {
        (self.0)(path)
    }
}

impl std::fmt::Debug for Open {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Open")
    }
}

/// A callback that long work calls regularly to check whether to continue. It may sleep to slow the work down.
#[derive(Clone)]
pub struct GoOn(Arc<dyn Fn() -> bool + Send + Sync>);

impl GoOn {
    /// Wraps a callback that returns whether to continue.
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> GoOn {
        GoOn(Arc::new(ask))
    }

    pub(crate) fn ask(&self) -> bool {
        (self.0)()
    }
}

impl Default for GoOn {
    /// Always continues.
    fn default() -> GoOn {
        GoOn::new(|| true)
    }
}

impl std::fmt::Debug for GoOn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("GoOn")
    }
}

impl Default for SymbolOptions {
    fn default() -> SymbolOptions {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        SymbolOptions {
            root: PathBuf::from("/"),
            process_root: Some(PathBuf::from("/proc")),
            perf_maps: vec![PathBuf::from("/tmp")],
            build_id_cache: home.map(|home| home.join(".debug")),
            kallsyms: Some(PathBuf::from("/proc/kallsyms")),
            kallsyms_text: None,
            memory: 1 << 30,
            go_on: GoOn::default(),
            open: None,
        }
    }
}

impl SymbolOptions {
    /// Searches nowhere: all symbols are unknown.
    pub fn none() -> SymbolOptions {
        SymbolOptions {
            root: PathBuf::from("/dev/null"),
            process_root: None,
            perf_maps: Vec::new(),
            build_id_cache: None,
            kallsyms: None,
            ..SymbolOptions::default()
        }
    }
}
