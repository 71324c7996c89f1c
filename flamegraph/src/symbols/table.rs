//! A table of symbols, and the search for the symbol of an address.

use std::cmp::Reverse;
use std::ops::Range;

use foldhash::HashMap;

use super::demangle::demangle;

/// A symbol's binding. Of two symbols at one address perf prefers the stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Local,
    Global,
    Weak,
}

/// A symbol as it is read: `end` is `start` if its size is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    pub(crate) end: u64,
    name: u32,
    name_bytes: u32,
    binding: Binding,
}

/// Where a symbol without a size ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// At the next symbol.
    Next,
    /// At the next symbol of the same kernel module, or at the end of its page.
    Kallsyms,
    /// Sizes are exact: an empty symbol covers no address.
    Given,
}

/// The number of a symbol in its table.
pub(crate) type SymbolId = u32;

/// The number of symbols per entry of `marks`.
const STRIDE: usize = 64;
/// How far back to search for a symbol that overlaps later ones.
const MOST_BACK: usize = 64;
/// Most symbols of one address that are compared.
const MOST_ALIASES: usize = 512;
/// The suffix of a stub's name, after the name of the called function.
pub(crate) const STUB: &str = "@plt";
/// Bytes each symbol takes in addition to its name.
const EACH: usize = size_of::<Symbol>() + size_of::<(u64, u64)>() + size_of::<u64>();

/// Symbols in order, once [`Symbols::finish`] was called.
#[derive(Default)]
pub(crate) struct Symbols {
    symbols: Vec<Symbol>,
    names: Vec<u8>,
    /// The start and end of each symbol, and the start of every [`STRIDE`]th: a compact index for searches.
    spans: Vec<(u64, u64)>,
    marks: Vec<u64>,
    /// The furthest end of this symbol and all before it.
    reach: Vec<u64>,
    /// The best of several symbols with the same start, by the first of them.
    best: HashMap<SymbolId, SymbolId>,
    mangled: bool,
    /// Most bytes that symbols may take. A file can refer to one name many times, and each reference is copied.
    memory: usize,
    /// The number of symbols that were left out for lack of memory.
    pub(crate) left_out: u64,
}

impl Symbols {
    /// An empty table of plain names.
    pub(crate) fn new() -> Symbols {
        Symbols {
            memory: usize::MAX,
            ..Symbols::default()
        }
    }

    /// An empty table of mangled names.
    pub(crate) fn mangled(memory: usize) -> Symbols {
        Symbols {
            mangled: true,
            memory,
            ..Symbols::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// How much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.symbols.len() * EACH + self.names.len()
    }

    /// Adds another table's symbols.
    pub(crate) fn append(&mut self, other: &Symbols) {
        self.left_out += other.left_out;
        for symbol in &other.symbols {
            let size = symbol.end - symbol.start;
            self.add(symbol.start, size, other.raw_name(symbol), symbol.binding);
        }
    }

    /// Adds a symbol, or only counts it if there is no room.
    pub(crate) fn add(&mut self, start: u64, size: u64, name: &[u8], binding: Binding) {
        let place = u32::try_from(self.names.len());
        let (Ok(place), Ok(name_bytes)) = (place, u32::try_from(name.len())) else {
            self.left_out += 1;
            return;
        };
        if self.bytes() + EACH + name.len() > self.memory {
            self.left_out += 1;
            return;
        }
        self.names.extend_from_slice(name);
        self.symbols.push(Symbol {
            start,
            end: start.saturating_add(size),
            name: place,
            name_bytes,
            binding,
        });
    }

    /// Moves every symbol to another start; those without one are removed.
    pub(crate) fn move_to(&mut self, place: impl Fn(u64) -> Option<u64>) {
        self.symbols.retain_mut(|symbol| {
            let Some(start) = place(symbol.start) else {
                return false;
            };
            symbol.end = start.saturating_add(symbol.end - symbol.start);
            symbol.start = start;
            true
        });
    }

    /// Sorts the symbols, and sets the end of those without a size.
    pub(crate) fn finish(&mut self, ends: Ends) {
        self.symbols.sort_by_key(|symbol| symbol.start);
        if ends != Ends::Given {
            self.end_open(ends);
        }
        let span = |symbol: &Symbol| (symbol.start, symbol.end);
        self.spans = self.symbols.iter().map(span).collect();
        self.marks = (self.spans.iter().step_by(STRIDE))
            .map(|&(start, _)| start)
            .collect();
        let mut furthest = 0;
        self.reach = (self.symbols.iter())
            .map(|symbol| {
                furthest = symbol.end.max(furthest);
                furthest
            })
            .collect();
    }

    fn end_open(&mut self, ends: Ends) {
        for place in 0..self.symbols.len() {
            let this = self.symbols[place];
            if this.end != this.start {
                continue;
            }
            let page_after = |address: u64| (address.saturating_add(0x1fff)) & !0xfff;
            let end = match self.symbols.get(place + 1) {
                None => page_after(this.start),
                Some(next) if ends == Ends::Next || self.same_module(&this, next) => next.start,
                Some(_) => page_after(this.end),
            };
            self.symbols[place].end = end;
        }
    }

    /// Whether two kernel symbols are of the same module, which kallsyms appends to the name.
    fn same_module(&self, one: &Symbol, other: &Symbol) -> bool {
        let module = |symbol| {
            let name = self.raw_name(symbol);
            name.iter()
                .position(|&byte| byte == b'[')
                .map(|at| &name[at..])
        };
        module(one) == module(other)
    }

    /// perf's order of preference for symbols that share an address; the first of equals wins.
    fn rank(&self, symbol: &Symbol) -> impl Ord + use<> {
        let name = self.name_of(symbol);
        let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
        (
            symbol.end > symbol.start,
            symbol.binding != Binding::Weak,
            symbol.binding == Binding::Global,
            Reverse(underscores),
            name.len(),
            !(name.starts_with("SyS") || name.starts_with("compat_SyS")),
        )
    }

    /// The number of the symbol an address belongs to.
    ///
    /// The best of those that start at one address represents all of them. It is found on demand, because names must be
    /// demangled and few are ever needed.
    pub(crate) fn find(&mut self, address: u64) -> Option<SymbolId> {
        let mut after = self.starts_up_to(address);
        for _ in 0..MOST_BACK {
            let start = self.spans[..after].last()?.0;
            let alone = after == 1 || self.spans[after - 2].0 != start;
            let first = match alone {
                true => after - 1,
                false => self.spans[..after].partition_point(|span| span.0 < start),
            };
            let best = self.best(first.max(after.saturating_sub(MOST_ALIASES))..after);
            if self.spans[best].1 > address {
                return Some(best as SymbolId);
            }
            if self.reach[after - 1] <= address {
                return None;
            }
            after = first;
        }
        None
    }

    /// How many symbols start at this address or before.
    fn starts_up_to(&self, address: u64) -> usize {
        let marks = self.marks.partition_point(|&start| start <= address);
        let from = marks.saturating_sub(1) * STRIDE;
        let to = self.spans.len().min(marks * STRIDE);
        from + self.spans[from..to].partition_point(|span| span.0 <= address)
    }

    fn best(&mut self, same_start: Range<usize>) -> usize {
        let first = same_start.start;
        if same_start.len() == 1 {
            return first;
        }
        if let Some(&known) = self.best.get(&(first as SymbolId)) {
            return known as usize;
        }
        let mut best = (first, self.rank(&self.symbols[first]));
        for other in same_start.skip(1) {
            let rank = self.rank(&self.symbols[other]);
            if rank > best.1 {
                best = (other, rank);
            }
        }
        let best = best.0;
        self.best.insert(first as SymbolId, best as SymbolId);
        best
    }

    pub(crate) fn name(&self, number: SymbolId) -> String {
        self.name_of(&self.symbols[number as usize])
    }

    pub(crate) fn start_of(&self, name: &[u8]) -> Option<u64> {
        let mut symbols = self.symbols.iter();
        let found = symbols.find(|symbol| self.raw_name(symbol) == name);
        found.map(|symbol| symbol.start)
    }

    fn raw_name(&self, symbol: &Symbol) -> &[u8] {
        &self.names[symbol.name as usize..][..symbol.name_bytes as usize]
    }

    fn name_of(&self, symbol: &Symbol) -> String {
        let raw = String::from_utf8_lossy(self.raw_name(symbol));
        if !self.mangled {
            return raw.into_owned();
        }
        match raw.strip_suffix(STUB) {
            Some(called) => demangle(called) + STUB,
            None => demangle(&raw),
        }
    }
}
