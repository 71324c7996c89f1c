//! A consistent palette: which colour each name was given, kept in a file from picture to picture.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

use super::palette::Rgb;
use crate::profile::{Bounded, Error, Result};

/// Names with their annotations, and their colours. The file is flamegraph.pl's `palette.map`: a line
/// `name->rgb(red,green,blue)` for each name, in the order of the names.
#[derive(Clone, Debug, Default)]
pub struct PaletteMap {
    colors: BTreeMap<String, Rgb>,
}

const MOST_BYTES: u64 = 256 << 20;

impl PaletteMap {
    /// An empty one: every name has its colour to come.
    pub fn new() -> PaletteMap {
        PaletteMap::default()
    }

    /// Reads a file. A line that is not of the form is an error with its number: a file that is no palette
    /// would otherwise be lost when it is written again.
    pub fn read(text: impl BufRead) -> Result<PaletteMap> {
        let bounded = Bounded::new(text, "bytes of a palette map", MOST_BYTES);
        let mut map = PaletteMap::new();
        for (number, line) in BufReader::new(bounded).split(b'\n').enumerate() {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\r');
            if line.is_empty() {
                continue;
            }
            let (name, color) = parse(line).ok_or_else(|| {
                let number = number + 1;
                Error::Usage(format!(
                    "palette map, line {number}: not a name, -> and rgb(red,green,blue)"
                ))
            })?;
            map.colors.insert(name.to_string(), color);
        }
        Ok(map)
    }

    /// Writes the file.
    pub fn write(&self, mut out: impl Write) -> Result<()> {
        for (name, (red, green, blue)) in &self.colors {
            writeln!(out, "{name}->rgb({red},{green},{blue})")?;
        }
        out.flush()?;
        Ok(())
    }

    /// The colour of a name; a new one is given the colour that `make` makes.
    pub(super) fn color(&mut self, annotated: &str, make: impl FnOnce() -> Rgb) -> Rgb {
        if let Some(color) = self.colors.get(annotated) {
            return *color;
        }
        let color = make();
        // A name with a line end in it has no line of its own.
        if !annotated.contains(['\n', '\r']) {
            self.colors.insert(annotated.to_string(), color);
        }
        color
    }
}

fn parse(line: &str) -> Option<(&str, Rgb)> {
    let (name, color) = line.rsplit_once("->")?;
    let inside = color.trim().strip_prefix("rgb(")?.strip_suffix(')')?;
    let mut parts = inside.split(',').map(|part| part.trim().parse::<u8>().ok());
    let color = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some((name, color))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut map = PaletteMap::read(&b"b->c->rgb(1,2,3)\na_[j]->rgb(4, 5, 6)\n"[..]).unwrap();
        assert_eq!(map.color("b->c", || (0, 0, 0)), (1, 2, 3));
        assert_eq!(map.color("new", || (7, 8, 9)), (7, 8, 9));
        assert_eq!(map.color("new", || (0, 0, 0)), (7, 8, 9));
        map.color("two\nlines->rgb(1,1,1)", || (0, 0, 0));
        let mut out = Vec::new();
        map.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a_[j]->rgb(4,5,6)\nb->c->rgb(1,2,3)\nnew->rgb(7,8,9)\n"
        );
    }

    #[test]
    fn what_is_no_palette_is_refused_with_its_line() {
        for wrong in [
            "a->rgb(1,2)",
            "a->rgb(1,2,256)",
            "a rgb(1,2,3)",
            "a->rgb(1,2,3,4)",
        ] {
            let text = format!("x->rgb(0,0,0)\n{wrong}\n");
            let error = PaletteMap::read(text.as_bytes()).err().unwrap().to_string();
            assert!(error.starts_with("palette map, line 2:"), "{error}");
        }
    }
}
