//! Frames of thread dumps: a method and a line. Each text is read once.

use foldhash::fast::RandomState;
use std::collections::HashMap;

use crate::profile::{Error, Kind, Limits, Result};
use crate::symbols::python_frame;

/// A frame, with the line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As all readers spell it: `java/lang/Thread.run`, `function (file.py)`.
    pub name: String,
    /// Kernel, or plain.
    pub kind: Kind,
    /// The line in the source; 0 if it is not known.
    pub line: u32,
}

pub(super) struct Places {
    index: HashMap<Box<[u8]>, u32, RandomState>,
    list: Vec<Place>,
    bytes: usize,
    most_bytes: usize,
    most_name: usize,
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Places {
        Places {
            index: HashMap::default(),
            list: Vec::new(),
            bytes: 0,
            most_bytes: limits.names_bytes,
            most_name: limits.name_bytes,
        }
    }

    pub(super) fn get(&self, number: u32) -> &Place {
        &self.list[number as usize]
    }

    /// The number of a frame of Java: `java.base@17/java.lang.Thread.run(Thread.java:840)`; other names stay as they are.
    pub(super) fn java(&mut self, text: &[u8]) -> Result<u32> {
        self.number(text, b'j', java_place)
    }

    /// The number of a frame of Python: `run (threading.py:975)`.
    pub(super) fn python(&mut self, text: &[u8]) -> Result<u32> {
        self.number(text, b'p', python_place)
    }

    fn number(&mut self, text: &[u8], language: u8, read: fn(&str) -> Place) -> Result<u32> {
        // The same text may be a frame of both languages.
        let mut short = [0; 256];
        let long;
        let key = match short.get_mut(..=text.len()) {
            Some(key) => {
                key[0] = language;
                key[1..].copy_from_slice(text);
                &*key
            }
            None => {
                long = [&[language], text].concat();
                &long[..]
            }
        };
        if let Some(&known) = self.index.get(key) {
            return Ok(known);
        }
        let limit = |what, limit: usize| {
            let limit = limit as u64;
            Err(Error::Limit { what, limit })
        };
        if text.len() > self.most_name {
            return limit("bytes of a frame name", self.most_name);
        }
        self.bytes += 2 * text.len();
        if self.bytes > self.most_bytes {
            return limit("bytes of all frames' names", self.most_bytes);
        }
        let number = self.list.len() as u32;
        self.list.push(read(&String::from_utf8_lossy(text)));
        self.index.insert(key.into(), number);
        Ok(number)
    }
}

fn plain(name: &str) -> Place {
    let (name, kind) = Kind::split(name.as_bytes());
    Place {
        name: String::from_utf8_lossy(name).into_owned(),
        kind,
        line: 0,
    }
}

fn java_place(text: &str) -> Place {
    let Some((method, source)) = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('))
    else {
        return plain(text);
    };
    let source = source.rsplit('/').next().unwrap_or(source);
    let (file, line) = source.rsplit_once(':').unwrap_or((source, ""));
    let is_file = file.contains('.') && !file.contains(' ') || line.parse::<u32>().is_ok();
    if !is_file && !["Native Method", "Unknown Source"].contains(&source) {
        return plain(text);
    }
    let method = without_module(method);
    let name = match method.rsplit_once('.') {
        Some((class, method)) => format!("{}.{method}", class.replace('.', "/")),
        None => method.to_owned(),
    };
    Place {
        name,
        kind: Kind::Plain,
        line: line.parse().unwrap_or(0),
    }
}

/// A method without its class loader and module: `app//`, `java.base@17.0.15/`. The name of a hidden class has a slash,
/// too, with a number behind: `Job$$Lambda$12/0x00007f75646dbc50`.
fn without_module(method: &str) -> &str {
    let is_module = |&(at, _): &(usize, &str)| {
        let next = method.as_bytes().get(at + 1);
        next.is_some_and(|next| !next.is_ascii_digit())
    };
    let end = method.match_indices('/').rfind(is_module);
    end.map_or(method, |(at, _)| &method[at + 1..])
}

fn python_place(text: &str) -> Place {
    let inner = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("));
    let Some((function, source)) = inner else {
        return plain(text);
    };
    let (file, line) = match source.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => (file, line),
        _ => (source, ""),
    };
    Place {
        name: match file.starts_with('/') {
            true => python_frame(function, file),
            // Short already.
            false => format!("{function} ({file})"),
        },
        kind: Kind::Plain,
        line: line.parse().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_spelled_as_by_all_readers() {
        let mut places = Places::new(&Limits::default());
        for (text, name, line) in [
            ("Dead.spin(Dead.java:12)", "Dead.spin", 12),
            (
                "java.lang.Thread.run(Thread.java:750)",
                "java/lang/Thread.run",
                750,
            ),
            (
                "java.lang.Object.wait0(java.base@25.0.3/Native Method)",
                "java/lang/Object.wait0",
                0,
            ),
            (
                "java.lang.Object.wait(java.base@25.0.3/Object.java:389)",
                "java/lang/Object.wait",
                389,
            ),
            (
                "java.base@17.0.15/java.lang.Thread.sleep(Native Method)",
                "java/lang/Thread.sleep",
                0,
            ),
            ("app//a.B$.apply$mcV$sp(B.scala:3)", "a/B$.apply$mcV$sp", 3),
            (
                "app//a.B$$Lambda$1335/0x00007f75646dbc50.call(Unknown Source)",
                "a/B$$Lambda$1335/0x00007f75646dbc50.call",
                0,
            ),
            (
                "Dead$$Lambda$2/990368553.run(Unknown Source)",
                "Dead$$Lambda$2/990368553.run",
                0,
            ),
            ("a.B.<init>(B.java)", "a/B.<init>", 0),
            ("ns::f(int)", "ns::f(int)", 0),
            ("syscall futex", "syscall futex", 0),
        ] {
            let number = places.java(text.as_bytes()).unwrap();
            let place = places.get(number);
            assert_eq!((place.name.as_str(), place.line), (name, line), "{text}");
        }
        let kernel = places.java(b"futex_wait_queue_[k]").unwrap();
        assert_eq!(places.get(kernel).kind, Kind::Kernel);
        assert_eq!(places.get(kernel).name, "futex_wait_queue");
        let python = places
            .python(b"wait (/usr/lib/python3.11/threading.py:320)")
            .unwrap();
        assert_eq!(places.get(python).name, "wait (threading.py)");
        assert_eq!(places.get(python).line, 320);
        let short = places
            .python(b"_worker (concurrent/futures/thread.py:81)")
            .unwrap();
        assert_eq!(
            places.get(short).name,
            "_worker (concurrent/futures/thread.py)"
        );
    }
}
