use super::*;

const HEADER: usize = 64;
const STUBS: u64 = 0x1000;

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A section's header: where its name and bytes are, and the number of the one it refers to.
fn section(name: u32, kind: u32, address: u64, bytes: (usize, usize), link: u32) -> Vec<u8> {
    let halves = |one: u32, other: u32| u64::from(one) | u64::from(other) << 32;
    let (at, size) = (bytes.0 as u64, bytes.1 as u64);
    let names = [halves(name, kind), 0, address];
    words(&[&names[..], &[at, size, halves(link, 0), 1, 24]].concat())
}

/// A library whose calls all go to one function with this name.
fn calling(name: &[u8], calls: usize) -> Vec<u8> {
    let call = words(&[0, 1 << 32 | 7, 0]);
    library(&[name, b"\0"].concat(), &[], &call.repeat(calls))
}

/// A library with these names, calls, and symbols beside the function of the first name.
fn library(names: &[u8], symbols: &[u64], calls: &[u8]) -> Vec<u8> {
    let section_names = b"\0.plt\0.rela.plt\0";
    let names = [b"\0", names].concat();
    let symbols = words(&[&[0, 0, 0, 1 | 0x12 << 32, 0, 0], symbols].concat());
    let parts = [&section_names[..], &names, &symbols, calls];
    let mut at = HEADER;
    let mut bytes = Vec::new();
    let places = parts.map(|part| {
        let place = (at, part.len());
        bytes.extend_from_slice(part);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        at = HEADER + bytes.len();
        place
    });
    let [strings, names, symbols, calls] = places;
    let sections = [
        vec![0; 64],
        section(0, 3, 0, strings, 0),
        section(0, 3, 0, names, 0),
        section(0, 11, 0, symbols, 2),
        section(1, 1, STUBS, (0, 0), 0),
        section(6, 4, 0, calls, 3),
    ];
    // One segment: all addresses, as they are.
    let segment = words(&[1 | 5 << 32, 0, 0, 0, 0, 1 << 32, 8]);
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    let (segments, tables) = (at as u64, (at + segment.len()) as u64);
    header.extend(words(&[3 | 62 << 16 | 1 << 32, 0, segments, tables]));
    let halves = [0, 0, HEADER as u16, 56, 1, 64, sections.len() as u16, 1];
    header.extend(halves.map(u16::to_le_bytes).concat());
    [header, bytes, segment, sections.concat()].concat()
}

fn symbols(file: Vec<u8>) -> Symbols {
    symbols_by(file, &SymbolOptions::none())
}

fn symbols_by(file: Vec<u8>, options: &SymbolOptions) -> Symbols {
    let elf = Elf::read(std::io::Cursor::new(file), options).unwrap();
    elf.into_symbols(None)
}

#[test]
fn calls_of_others_have_stubs() {
    let mut symbols = symbols(calling(b"malloc", 3));
    assert_eq!((symbols.len(), symbols.left_out), (3, 0));
    let found = symbols.find(STUBS + 16 + 2 * 16 + 5).unwrap();
    assert_eq!(symbols.name(found), "malloc@plt");
}

/// If stubs were named in the order of the calls, as perf before 6.3 does, two would swap their names.
#[test]
fn stubs_go_by_the_slots_of_their_calls() {
    let (chosen, weak) = (8 | 0x1a << 32 | 1 << 48, 15 | 0x2a << 32 | 1 << 48);
    let functions = [weak, 0x5000, 8, chosen, 0x5000, 8];
    let (malloc, at_start) = (1 << 32 | 7, 37);
    let calls = words(&[16, malloc, 0, 8, at_start, 0x5000, 24, at_start, 0x6000]);
    let mut symbols = symbols(library(b"malloc\0strlen\0length\0", &functions, &calls));
    let mut called = |stub: u64| {
        let found = symbols.find(STUBS + 16 + stub * 16 + 1)?;
        Some(symbols.name(found))
    };
    assert_eq!(called(0).unwrap(), "strlen@plt");
    assert_eq!(called(1).unwrap(), "malloc@plt");
    assert_eq!(called(2), None);
}

#[test]
fn a_name_without_measure_is_left_out() {
    let symbols = symbols(calling(&[b'A'; 200_000], 20));
    assert_eq!(symbols.len(), 0);
}

#[test]
fn stubs_of_mangled_functions_are_readable() {
    let mut symbols = symbols(calling(b"_ZN4some8functionEv", 1));
    let stub = symbols.find(STUBS + 16 + 1).unwrap();
    assert_eq!(symbols.name(stub), "some::function@plt");
}

/// `count` functions with the same name.
fn of_functions(count: usize) -> Vec<u8> {
    let function = [1 | 0x12 << 32 | 1 << 48, 0x5000, 8];
    library(b"f\0", &function.repeat(count), &[])
}

fn with_memory(memory: usize) -> SymbolOptions {
    SymbolOptions {
        memory,
        ..SymbolOptions::none()
    }
}

#[test]
fn symbols_take_no_more_memory_than_there_is() {
    let file = of_functions(10_000);
    for memory in [file.len() / 2, file.len()] {
        let table = symbols_by(file.clone(), &with_memory(memory));
        assert!(table.bytes() <= memory && table.left_out > 1000);
        // The library has two more symbols, which are undefined.
        assert!((10_000..=10_002).contains(&(table.len() as u64 + table.left_out)));
    }
}

#[test]
fn a_debug_table_without_room_leaves_the_symbols_of_the_file() {
    let read = |count, memory| {
        let file = std::io::Cursor::new(of_functions(count));
        Elf::read(file, &with_memory(memory)).unwrap()
    };
    let with = |debug| read(10, 1 << 20).into_symbols(Some(debug));
    assert_eq!(with(read(1000, 1 << 20)).left_out, 0);
    let table = with(read(1000, 2000));
    assert!(table.len() >= 10 && table.left_out >= 1000);
}

#[test]
fn who_wants_no_more_symbols_is_given_none() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = AtomicUsize::new(0);
    let options = SymbolOptions {
        go_on: GoOn::new(move || asked.fetch_add(1, Ordering::Relaxed) < 2),
        ..SymbolOptions::none()
    };
    let table = symbols_by(of_functions(5 * OFTEN), &options);
    assert!(
        (OFTEN..=2 * OFTEN).contains(&table.len()),
        "{}",
        table.len()
    );
    assert!(table.left_out >= 3 * OFTEN as u64);
}
