//! Text in a picture: names, escaped for XML and cut to their frames, and formatted amounts.

use std::fmt::{self, Write as _};

use super::options::Options;
use crate::profile::ValueType;

/// Text for an element or an attribute: markup becomes references, and characters that XML forbids U+FFFD.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_special) {
            f.write_str(&rest[..at])?;
            let mut letters = rest[at..].chars();
            f.write_str(match letters.next() {
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                Some('\'') => "&#39;",
                _ => "\u{fffd}",
            })?;
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

fn is_special(letter: char) -> bool {
    matches!(
        letter,
        '&' | '<' | '>' | '"' | '\'' | '\u{fffe}' | '\u{ffff}'
    ) || letter.is_control()
}

/// The beginning of a name that fits into `room` letters.
pub(super) fn fit(name: &str, room: usize) -> (&str, &'static str) {
    if room < 3 {
        return ("", "");
    }
    match name.char_indices().nth(room) {
        None => (name, ""),
        Some(_) => {
            let end = name
                .char_indices()
                .nth(room - 2)
                .map_or(name.len(), |(at, _)| at);
            (&name[..end], "..")
        }
    }
}

/// How amounts of a value are written.
pub(super) struct Amounts<'a> {
    unit: &'a str,
    name: Option<String>,
    counts: bool,
    factor: f64,
}

impl<'a> Amounts<'a> {
    /// `is_change`: the value is a side of a difference, so its name does not say what is counted.
    pub(super) fn of(value: &'a ValueType, is_change: bool, options: &Options) -> Amounts<'a> {
        let named = match (&options.count_name, is_change, value.unit.as_str()) {
            (Some(name), ..) => Some(name.as_str()),
            (None, true, "count") => Some("samples"),
            (None, true, _) => None,
            (None, false, _) => Some(value.name.as_str()),
        };
        Amounts {
            unit: &value.unit,
            // The script separates name and amount at the last parenthesis.
            name: named.map(|name| name.replace('(', "[")),
            counts: options.count_name.is_some() || value.unit == "count",
            factor: options.factor,
        }
    }

    /// `1,234 samples`, `1.234 s cpu`, `4,096 bytes alloc_space`
    pub(super) fn put(&self, out: &mut String, amount: i64) -> fmt::Result {
        let scaled = if self.factor == 1.0 {
            amount
        } else {
            (amount as f64 * self.factor).round() as i64
        };
        if !self.counts && self.unit == "nanoseconds" {
            write!(out, "{:.3} s", scaled as f64 / 1e9)?;
        } else {
            put_grouped(out, scaled);
            if !self.counts {
                write!(out, " {}", Escaped(&self.unit.replace('(', "[")))?;
            }
        }
        match &self.name {
            Some(name) => write!(out, " {}", Escaped(name)),
            None => Ok(()),
        }
    }
}

/// `1,234,567`
fn put_grouped(out: &mut String, number: i64) {
    let digits = number.to_string();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_their_frame() {
        assert_eq!(
            fit("java/util/HashMap.get", 21),
            ("java/util/HashMap.get", "")
        );
        assert_eq!(fit("java/util/HashMap.get", 7), ("java/", ".."));
        assert_eq!(fit("éééééééé", 4), ("éé", ".."));
        assert_eq!(fit("f", 3), ("f", ""));
        assert_eq!(fit("f", 2), ("", ""));
    }

    fn shown(amount: i64, name: &str, unit: &str, is_change: bool, options: &Options) -> String {
        let mut out = String::new();
        let value = ValueType::new(name, unit);
        Amounts::of(&value, is_change, options)
            .put(&mut out, amount)
            .unwrap();
        out
    }

    #[test]
    fn amounts_are_readable() {
        let show = |amount, name, unit| shown(amount, name, unit, false, &Options::default());
        assert_eq!(show(1_234_567, "samples", "count"), "1,234,567 samples");
        assert_eq!(show(123, "samples", "count"), "123 samples");
        assert_eq!(show(1_500_000_000, "cpu", "nanoseconds"), "1.500 s cpu");
        assert_eq!(show(4096, "alloc(", "bytes"), "4,096 bytes alloc[");
    }

    #[test]
    fn sides_of_a_difference_are_told_by_their_unit() {
        let show = |amount, unit| shown(amount, "after", unit, true, &Options::default());
        assert_eq!(show(1234, "count"), "1,234 samples");
        assert_eq!(show(1_500_000_000, "nanoseconds"), "1.500 s");
        assert_eq!(show(4096, "bytes"), "4,096 bytes");
    }

    #[test]
    fn a_name_for_the_counts_and_a_factor_are_taken_as_given() {
        let options = Options {
            count_name: Some("kB <of> (heap)".to_string()),
            factor: 1.0 / 1024.0,
            ..Options::default()
        };
        let text = shown(4_194_304, "alloc_space", "bytes", false, &options);
        assert_eq!(text, "4,096 kB &lt;of&gt; [heap)");
    }
}
