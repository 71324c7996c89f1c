//! What can go wrong, said so that a person knows where and why.

use std::fmt;
use std::io;

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a profile could not be read, merged or written.
#[derive(Debug)]
pub enum Error {
    /// The underlying reader or writer failed.
    Io(io::Error),
    /// Folded text broke a rule at this line (the first line is 1).
    Line {
        /// The number of the line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A text whose format was not named has no line of folded text.
    UnknownFormat {
        /// The number of the first line with words.
        line: u64,
        /// What is wrong with it, and the formats that can be read.
        reason: String,
    },
    /// A text in another format broke a rule at this line.
    Text {
        /// Whose rule.
        format: &'static str,
        /// The number of the line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A JFR recording is damaged at this byte, or the chunk that begins there is.
    Jfr {
        /// The offset in the recording, uncompressed.
        place: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A perf.data file is damaged; says where.
    PerfData(String),
    /// A map of compiled code is damaged or lies about itself; says where.
    JitMap(String),
    /// A pprof message is damaged or lies about itself.
    Pprof(String),
    /// A compact profile is damaged or lies about itself.
    Compact(String),
    /// A speedscope file is damaged or lies about itself.
    Speedscope(String),
    /// The input is larger than a reader may accept.
    Limit {
        /// What is too large.
        what: &'static str,
        /// The most that is accepted.
        limit: u64,
    },
    /// A sum does not fit in 64 bits.
    Overflow(String),
    /// A value of several profiles together does not fit in 64 bits.
    MergeOverflow(String),
    /// Profiles of unlike values do not add up.
    UnlikeValues {
        /// The values of the profile merged into.
        ours: String,
        /// The values of the profile that was to be added.
        theirs: String,
    },
    /// There is nothing to draw, and why.
    Empty(String),
    /// The caller asked for something there is not (a value, a palette, a format).
    Usage(String),
    /// What went wrong with one file of several, and its name.
    File(String, Box<Error>),
}

impl Error {
    /// Whether it is what was asked for that is wrong, and not what was read.
    pub fn is_usage(&self) -> bool {
        self.code() == "usage"
    }

    /// A name for callers that act on the kind of error; most errors have none of their own.
    pub fn code(&self) -> &'static str {
        match self {
            Error::UnknownFormat { .. } => "unknown-format",
            Error::Pprof(_) => "pprof-damaged",
            Error::MergeOverflow(_) => "merge-overflow",
            Error::UnlikeValues { .. } => "unlike-values",
            Error::Usage(_) => "usage",
            Error::File(_, error) => error.code(),
            _ => "other",
        }
    }

    /// The line of folded text at which it arose, if that is known.
    pub(crate) fn line(&self) -> Option<u64> {
        match self {
            Error::Line { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The same error with the line of folded text at which it arose.
    pub(crate) fn at_line(self, line: u64) -> Error {
        match self {
            Error::Io(_) | Error::Line { .. } => self,
            other => Error::Line {
                line,
                reason: other.to_string(),
            },
        }
    }
}

#[cfg(feature = "formats")]
impl Error {
    /// The same error with the line of a text at which it arose.
    pub(crate) fn at(self, format: &'static str, line: u64) -> Error {
        match self {
            Error::Io(_) | Error::Text { .. } => self,
            other => Error::Text {
                format,
                line,
                reason: other.to_string(),
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "{error}"),
            Error::Line { line, reason } | Error::UnknownFormat { line, reason } => {
                write!(f, "folded text, line {line}: {reason}")
            }
            Error::Text {
                format,
                line,
                reason,
            } => write!(f, "{format}, line {line}: {reason}"),
            Error::Jfr { place, reason } => write!(f, "JFR recording, byte {place}: {reason}"),
            Error::PerfData(reason) => write!(f, "perf.data: {reason}"),
            Error::JitMap(reason) => write!(f, "map of compiled code: {reason}"),
            Error::Pprof(reason) => write!(f, "pprof: {reason}"),
            Error::Compact(reason) => write!(f, "compact profile: {reason}"),
            Error::Speedscope(reason) => write!(f, "speedscope: {reason}"),
            Error::Limit { what, limit } => write!(f, "{what}: more than {limit}"),
            Error::Overflow(what) => write!(f, "{what}: the sum does not fit in 64 bits"),
            Error::MergeOverflow(value) => {
                write!(
                    f,
                    "{value} of several profiles: the sum does not fit in 64 bits"
                )
            }
            Error::UnlikeValues { ours, theirs } => {
                write!(f, "unlike values do not add up: {ours} and {theirs}")
            }
            Error::Empty(reason) | Error::Usage(reason) => f.write_str(reason),
            Error::File(name, error) => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        // A bounded reader reports its limit through io::Error; it comes out as what it is.
        match error.downcast::<Error>() {
            Ok(ours) => ours,
            Err(error) => Error::Io(error),
        }
    }
}
