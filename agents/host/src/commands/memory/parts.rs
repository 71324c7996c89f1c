//! What each mapping of a process is for, by its address, its name and its neighbours.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::smaps::Piece;
use crate::os::proc::maps::{file_name, Mapping};
use crate::wire::memory::{Amount, FileMemory, Part};

/// glibc maps its arenas in areas of this size, which begin at a multiple of it.
const ARENA: u64 = 64 << 20;
/// What is as large is not in an arena, so that less may be left of a full area.
const LARGE_PIECE: u64 = 128 << 10;
/// HotSpot protects at most this many pages at the end of a stack, the C library one.
const GUARD_PAGES: u64 = 4;
/// Stacks of Java threads are not larger by default.
const JAVA_STACK: u64 = 2 << 20;
/// How much a stack may be larger than was asked for.
const SLACK: u64 = 64 << 10;
/// How ZGC names its heap. Before generational ZGC it maps it three times.
const ZGC_HEAP: &str = "/memfd:java_heap";
/// The most files that are named.
const MOST_FILES: usize = 20;

/// What is known of the process.
#[derive(Default)]
pub struct Known {
    pub is_jvm: bool,
    pub heap: Option<Range<u64>>,
    /// What was touched of the metaspace, of which the addresses are not known.
    pub metaspace: u64,
    /// The stack size that the JVM was told to use, and that of threads of native code.
    pub stack_sizes: [u64; 2],
    pub page: u64,
}

pub fn parts(pieces: &[Piece], known: &Known) -> BTreeMap<Part, Amount> {
    let programs = programs(pieces);
    let mut parts: BTreeMap<Part, Amount> = BTreeMap::new();
    for (place, piece) in pieces.iter().enumerate() {
        let part = part(pieces, place, known, &programs);
        let amount = parts.entry(part).or_default();
        amount.resident += resident(piece);
        amount.swap += piece.swap;
    }
    take_metaspace(&mut parts, known.metaspace);
    parts.retain(|_, amount| *amount != Amount::default());
    parts
}

/// Only the JVM knows where its metaspace is.
fn take_metaspace(parts: &mut BTreeMap<Part, Amount>, touched: u64) {
    let rest = parts.entry(Part::Anonymous).or_default();
    let taken = touched.min(rest.resident);
    rest.resident -= taken;
    parts.entry(Part::Metaspace).or_default().resident += taken;
}

/// A page that is mapped three times is there once.
fn resident(piece: &Piece) -> u64 {
    match is_zgc_heap(&piece.mapping) {
        true => piece.proportional,
        false => piece.resident,
    }
}

pub fn files(pieces: &[Piece]) -> Vec<FileMemory> {
    let mut files: HashMap<&str, u64> = HashMap::new();
    let named = pieces.iter().filter(|piece| !is_zgc_heap(&piece.mapping));
    for piece in named.filter(|piece| piece.mapping.file.path.starts_with('/')) {
        *files.entry(&piece.mapping.file.path).or_default() += piece.resident;
    }
    let mut files: Vec<FileMemory> = files
        .into_iter()
        .map(|(path, resident)| FileMemory {
            path: path.to_owned(),
            resident,
        })
        .collect();
    files.sort_by(|a, b| (b.resident, &a.path).cmp(&(a.resident, &b.path)));
    files.truncate(MOST_FILES);
    files
}

fn is_zgc_heap(mapping: &Mapping) -> bool {
    mapping.file.path == ZGC_HEAP
}

/// The files of which code is mapped.
fn programs(pieces: &[Piece]) -> HashSet<&str> {
    let code = pieces.iter().filter(|piece| piece.mapping.is_code());
    code.map(|piece| &*piece.mapping.file.path).collect()
}

fn part(pieces: &[Piece], place: usize, known: &Known, programs: &HashSet<&str>) -> Part {
    let mapping = &pieces[place].mapping;
    let in_heap = |heap: &Range<u64>| heap.contains(&mapping.range.start);
    if known.heap.as_ref().is_some_and(in_heap) || is_zgc_heap(mapping) {
        return Part::Heap;
    }
    match mapping.file.path.as_str() {
        "" => nameless(pieces, place, known),
        "[heap]" => Part::Malloc,
        "[stack]" => Part::Stacks,
        path if path.starts_with("[anon") => nameless(pieces, place, known),
        path if path.starts_with('[') => Part::Libraries,
        path => of_file(path, programs),
    }
}

fn of_file(path: &str, programs: &HashSet<&str>) -> Part {
    let name = file_name(path);
    if ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"]
        .iter()
        .any(|begin| path.starts_with(begin))
    {
        Part::Shared
    } else if programs.contains(path) || name.ends_with(".so") || name.contains(".so.") {
        Part::Libraries
    } else if [".jar", ".jsa", ".jmod", ".zip"]
        .iter()
        .any(|end| name.ends_with(end))
        || path.ends_with("/lib/modules")
    {
        Part::Jars
    } else {
        Part::Files
    }
}

fn nameless(pieces: &[Piece], place: usize, known: &Known) -> Part {
    match &pieces[place].mapping.permissions {
        [b'r', b'w', b'x', _] if known.is_jvm => Part::Code,
        _ if is_arena(pieces, place) => Part::Malloc,
        b"rw-p" if is_stack(pieces, place, known) => Part::Stacks,
        b"rw-s" => Part::Shared,
        _ => Part::Anonymous,
    }
}

/// A large arena has several areas, of which all but one are full.
pub fn arenas(pieces: &[Piece]) -> usize {
    let has_room = |place: usize| {
        let end = pieces[place].mapping.range.end;
        end.next_multiple_of(ARENA) - end >= LARGE_PIECE
    };
    let places = 0..pieces.len();
    places
        .filter(|&place| is_arena(pieces, place) && has_room(place))
        .count()
}

/// glibc reserves an area and uses its beginning, with the same flags for both. (The JVM maps what it uses anew.) Newer
/// ones do without `MAP_NORESERVE`: there the rest of the area shows it.
fn is_arena(pieces: &[Piece], place: usize) -> bool {
    let piece = &pieces[place];
    let mapping = &piece.mapping;
    let is_rest = |rest: &Piece| {
        rest.mapping.range.start == mapping.range.end
            && rest.mapping.range.end >= mapping.range.end.next_multiple_of(ARENA)
            && rest.is_protected()
            && !rest.unreserved
    };
    mapping.is_anonymous()
        && &mapping.permissions == b"rw-p"
        && mapping.range.start % ARENA == 0
        && (piece.unreserved || pieces.get(place + 1).is_some_and(is_rest))
}

/// A stack begins above protected pages. On kernels before 6.7 it may be one mapping with what is above: then it is too
/// large, and nobody knows which part of it is the stack.
fn is_stack(pieces: &[Piece], place: usize, known: &Known) -> bool {
    let piece = &pieces[place];
    let below = place.checked_sub(1).and_then(|place| pieces.get(place));
    let is_guard = |guard: &Piece| {
        guard.mapping.range.end == piece.mapping.range.start
            && guard.is_protected()
            && guard.size() <= GUARD_PAGES * known.page
    };
    let [java, native] = known.stack_sizes;
    let size = piece.size();
    let fits = size <= java.max(JAVA_STACK) + SLACK || size.abs_diff(native) <= SLACK;
    below.is_some_and(is_guard) && fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::memory::smaps::pieces;

    /// In KiB.
    fn told(smaps: &str, known: &Known) -> Vec<(Part, u64)> {
        let parts = parts(&pieces(smaps.as_bytes()).unwrap(), known);
        let parts = parts.into_iter();
        parts
            .map(|(part, amount)| (part, amount.resident >> 10))
            .collect()
    }

    fn jvm() -> Known {
        Known {
            is_jvm: true,
            heap: Some(0xe000_0000..0x1_0000_0000),
            stack_sizes: [0, 8 << 20],
            page: 4096,
            ..Known::default()
        }
    }

    /// What was recorded of JDK 17 with G1, shortened.
    #[test]
    fn parts_of_a_jvm() {
        let smaps = include_str!("jdk17_g1.smaps");
        let known = Known {
            metaspace: 15488 << 10,
            ..jvm()
        };
        let want = [
            (Part::Heap, 121_600 + 468 + 480),
            (Part::Metaspace, 15_488),
            (Part::Code, 2_040),
            (Part::Stacks, 16 + 3 * 1_008 + 88),
            (Part::Malloc, 108 + 1_408 + 4_192),
            (Part::Libraries, 4 + 15_000),
            (Part::Jars, 11_956 + 1_152),
            (Part::Files, 16_384),
            (Part::Shared, 32),
            // Direct buffers, large pieces, and what is left of the tables of the collector.
            (
                Part::Anonymous,
                65_540 + 49_156 + 1_212 + 12_056 + 256 + 104 + 1_764 + 624 - 15_488,
            ),
        ];
        assert_eq!(told(smaps, &known), want);
    }

    #[test]
    fn pages_that_are_mapped_three_times_are_there_once() {
        let view = "40000000000-40010000000 rw-s 00000000 00:01 980   /memfd:java_heap (deleted)\n\
                    Rss:   3000 kB\nPss:   1000 kB\nVmFlags: rd wr sh\n";
        let smaps = view.repeat(3);
        assert_eq!(told(&smaps, &jvm()), [(Part::Heap, 3000)]);
        assert_eq!(files(&pieces(smaps.as_bytes()).unwrap()).len(), 0);
    }

    #[test]
    fn a_mapping_that_may_be_a_stack_and_more_is_none() {
        let with = |size: u64| {
            let from = 0x7f00_0000_1000_u64;
            format!(
                "7f0000000000-{from:x} ---p 00000000 00:00 0\nRss: 0 kB\n\
                 {from:x}-{:x} rw-p 00000000 00:00 0\nRss: 100 kB\n",
                from + size
            )
        };
        let part_of = |size: u64| told(&with(size), &jvm())[0].0;
        assert_eq!([1 << 20, 8 << 20].map(part_of), [Part::Stacks; 2]);
        assert_eq!([4 << 20, 65 << 20].map(part_of), [Part::Anonymous; 2]);
    }

    #[test]
    fn arenas_of_a_newer_c_library() {
        let with = |start: &str, rest: &str| {
            format!(
                "{start}-7f704a963000 rw-p 00000000 00:00 0\nRss: 100 kB\nVmFlags: rd wr mr mw me ac \n\
                 7f704a963000-7f704c000000 ---p 00000000 00:00 0\nRss: 0 kB\nVmFlags: mr mw me {rest}\n"
            )
        };
        let part_of = |start, rest| told(&with(start, rest), &jvm())[0].0;
        assert_eq!(part_of("7f7048000000", ""), Part::Malloc);
        // Metaspace that is reserved at such a place, and any other mapping.
        assert_eq!(part_of("7f7048000000", "nr"), Part::Anonymous);
        assert_eq!(part_of("7f7048001000", ""), Part::Anonymous);
    }

    #[test]
    fn an_arena_of_several_areas_is_one() {
        let flags = "VmFlags: rd wr mr mw me nr \n";
        let smaps = format!(
            "7f450c000000-7f4510000000 rw-p 00000000 00:00 0\nRss: 65536 kB\n{flags}\
             7f4510000000-7f4513ff1000 rw-p 00000000 00:00 0\nRss: 65476 kB\n{flags}\
             7f4513ff1000-7f4514000000 ---p 00000000 00:00 0\nRss: 0 kB\n{flags}\
             7f4518000000-7f4518207000 rw-p 00000000 00:00 0\nRss: 1408 kB\n{flags}\
             7f4518207000-7f451c000000 ---p 00000000 00:00 0\nRss: 0 kB\n{flags}"
        );
        assert_eq!(told(&smaps, &jvm()), [(Part::Malloc, 65536 + 65476 + 1408)]);
        assert_eq!(arenas(&pieces(smaps.as_bytes()).unwrap()), 1);
    }

    #[test]
    fn what_is_cut_off_is_not_believed() {
        assert!(pieces(&b""[..]).is_none());
        assert!(pieces(&b"1000-2000 rw-p 0 00:00 0\nRss: x kB\n"[..]).is_none());
    }
}
