//! What the numbers of a profile mean.

use std::fmt;

/// The meaning of one value of a profile, in pprof's terms: what is counted, and in which unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// What is counted: `samples`, `cpu`, `alloc` ...
    pub name: String,
    /// In which unit: `count`, `nanoseconds`, `bytes` ...
    pub unit: String,
}

impl ValueType {
    /// A value type of this name and unit.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> ValueType {
        ValueType {
            name: name.into(),
            unit: unit.into(),
        }
    }

    /// Samples, by count.
    pub fn samples() -> ValueType {
        ValueType::new("samples", "count")
    }

    /// CPU time in nanoseconds.
    pub fn cpu() -> ValueType {
        ValueType::new("cpu", "nanoseconds")
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.unit)
    }
}

/// `samples (count), cpu (nanoseconds)`
pub(crate) fn list(values: &[ValueType]) -> String {
    let names: Vec<String> = values.iter().map(ValueType::to_string).collect();
    names.join(", ")
}
