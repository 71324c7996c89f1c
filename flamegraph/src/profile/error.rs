//! Errors.

use std::fmt;
use std::io;

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a profile could not be read, merged or written.
#[derive(Debug)]
pub enum Error {
    /// The underlying reader or writer failed.
    Io(io::Error),
    /// A file is no profile that can be read. It has what the file is, and what to do with it.
    Foreign(String),
    /// Most lines of a text whose format was not named are not folded text.
    UnknownFormat {
        /// The number of the first line that is not.
        line: u64,
        /// What is wrong with the text, and the formats that can be read.
        reason: String,
    },
    /// A text broke a rule at this line (the first line is 1).
    Text {
        /// The format that has the rule.
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
    /// A file of this format is damaged or contradicts itself, and how.
    Damaged(&'static str, String),
    /// A file of this format has a negative number, and where: it is the difference of two profiles.
    Negative(&'static str, String),
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
    /// The caller asked for something that does not exist: a value, a palette, a format.
    Usage(String),
    /// What went wrong with one file of several, and its name.
    File(String, Box<Error>),
}

impl Error {
    /// The format of folded text, in errors.
    pub(crate) const FOLDED: &str = "folded text";

    /// Whether the request is wrong, not the input.
    pub fn is_usage(&self) -> bool {
        self.code() == "usage"
    }

    /// A stable code for callers that act on the kind of error. Most errors are `other`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Foreign(_) => "foreign",
            Error::UnknownFormat { .. } => "unknown-format",
            Error::Negative(..) => "negative",
            Error::MergeOverflow(_) => "merge-overflow",
            Error::UnlikeValues { .. } => "unlike-values",
            Error::Usage(_) => "usage",
            Error::File(_, error) => error.code(),
            _ => "other",
        }
    }

    /// The line at which it arose, if that is known.
    pub(crate) fn line(&self) -> Option<u64> {
        match self {
            Error::Text { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The same error with the line of folded text at which it arose.
    pub(crate) fn at_line(self, line: u64) -> Error {
        self.at(Error::FOLDED, line)
    }

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
            Error::Foreign(what) => write!(f, "not a profile that can be read, but {what}"),
            Error::UnknownFormat { line, reason } => {
                write!(f, "{}, line {line}: {reason}", Error::FOLDED)
            }
            Error::Text {
                format,
                line,
                reason,
            } => write!(f, "{format}, line {line}: {reason}"),
            Error::Jfr { place, reason } => write!(f, "JFR recording, byte {place}: {reason}"),
            Error::Damaged(format, reason) => write!(f, "{format}: {reason}"),
            Error::Negative(format, number) => write!(
                f,
                "{format}: {number} is negative: differences of profiles are not read"
            ),
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
        // A bounded reader wraps its limit in an io::Error; unwrap it.
        match error.downcast::<Error>() {
            Ok(ours) => ours,
            Err(error) => Error::Io(error),
        }
    }
}
