//! Input of every format cut off anywhere and changed anywhere: each is read or refused, and what is read is written.

use std::fs;
use std::io;
use std::sync::OnceLock;

use flamegraph::perf_data::{Finish, JitMap, JitMaps, Live, LiveLimits};
use flamegraph::svg::{FlameChart, Options};
use flamegraph::{
    read, read_jfr, Format, Limits, Profile, ReadOptions, SymbolOptions, Threads, WriteFormat,
};

use crate::golden::OTHER_TOOLS;
use crate::perf_data::{file, options, packed, piped, story};
use crate::perf_maker::wanted;
use crate::support::{body, compact, gunzip, samples, text, written};
use crate::{jfr_maker, jit_map, perf_live};

/// Every beginning of it; with each byte as another, and with each eight bytes set or cleared.
fn damage(whole: &[u8], attempt: impl Fn(&[u8])) {
    for end in 0..whole.len() {
        attempt(&whole[..end]);
    }
    for place in 0..whole.len() {
        let mut changed = whole.to_vec();
        for byte in [0, 0xff, whole[place] ^ 1, whole[place] ^ 0x80] {
            changed[place] = byte;
            attempt(&changed);
        }
        if place + 8 <= whole.len() {
            changed[place..place + 8].fill(if whole[place] == 0xff { 0 } else { 0xff });
            attempt(&changed);
        }
    }
}

/// A profile with modules, tiers, a label, and names that formats trip over.
fn profile() -> &'static Profile {
    static MADE: OnceLock<Profile> = OnceLock::new();
    MADE.get_or_init(|| {
        let script =
            "java 7/8 1.0: 1 cpu-clock:\n\tff read+0x1 ([ext4])\n\t7f run+0x1 (/opt/libx.so)\n\n";
        let mut made = read(
            script.as_bytes(),
            &ReadOptions::of(Some(Format::PerfScript)),
        )
        .unwrap();
        made.merge(&samples(
            "main;a.B.c_[j];é_[k] 3\nmain;a.B.c_[0] 4\nx;x;x 5\n 2\n",
        ))
        .unwrap();
        made.set_label("host", "é");
        made
    })
}

/// Written in every format, where it can be read at all; false where it cannot.
fn rewritten(bytes: &[u8], options: &ReadOptions) -> bool {
    let Ok(profile) = read(bytes, options) else {
        return false;
    };
    text(&profile);
    for format in [WriteFormat::Compact, WriteFormat::Pprof, WriteFormat::Json] {
        written(&profile, format);
    }
    assert!(profile.modules().count() <= profile.node_count());
    true
}

#[test]
fn compact_profiles() {
    let whole = body(&written(profile(), WriteFormat::Compact));
    let options = ReadOptions::default();
    assert!(rewritten(&compact(&whole), &options));
    damage(&whole, |bytes| {
        rewritten(&compact(bytes), &options);
    });
}

#[test]
fn pprof() {
    let whole = gunzip(&written(profile(), WriteFormat::Pprof));
    let options = ReadOptions::of(Some(Format::Pprof));
    assert!(rewritten(&whole, &options));
    damage(&whole, |bytes| {
        rewritten(bytes, &options);
    });
}

#[test]
fn jfr_recordings() {
    let whole = jfr_maker::recording();
    let options = ReadOptions {
        threads: Threads::Groups,
        estimate: true,
        off_cpu: true,
        times: true,
        ..ReadOptions::of(Some(Format::Jfr))
    };
    damage(&whole, |bytes| drop(read_jfr(bytes, &options)));
    // Numbers as large as they can be.
    for place in 68..whole.len() {
        let huge = [&whole[..place], &[0xff; 9][..], &whole[place + 1..]].concat();
        drop(read_jfr(&huge[..], &options));
    }
}

#[test]
fn perf_recordings() {
    for whole in [
        file(&story()),
        piped(&story()),
        file(&[packed(&story().concat(), true)]),
    ] {
        damage(&whole, |bytes| drop(read(bytes, &options())));
    }
}

#[test]
fn streams_of_perf() {
    damage(&perf_live::stream(&perf_live::story()), |bytes| {
        let mut live = Live::new(wanted(), LiveLimits::default());
        let _ = live.read(bytes);
        let (symbols, jit) = (SymbolOptions::none(), JitMaps::new());
        let _ = live.finish(&Finish {
            pid: None,
            symbols: &symbols,
            jit: &jit,
            cpu_nanoseconds: Some(1),
        });
    });
}

#[test]
fn maps_of_compiled_code() {
    let whole = jit_map::map();
    for end in 0..whole.len() {
        assert!(JitMap::binary(&whole[..end]).is_err(), "{end}");
    }
    damage(&whole, |bytes| {
        if let Ok(map) = JitMap::binary(bytes) {
            for address in (0xff0..0x10c0).chain([0, u64::MAX]) {
                map.find(address);
            }
        }
    });
}

#[test]
fn flame_charts() {
    let limits = Limits {
        cells: 50_000,
        ..Limits::default()
    };
    let chart = |bytes: &[u8]| {
        for reverse in [false, true] {
            if let Ok(chart) = FlameChart::read(bytes, reverse, &limits) {
                // Nothing to draw is the only reason not to.
                let drawn = chart.write_svg(io::sink(), &Options::default());
                assert_eq!(drawn.is_ok(), chart.total() > 0);
            }
        }
    };
    damage(
        b"main;\xd0\xb0 [x];b_[j] 12\nmain;c 9223372036854775807\n;; 3\n",
        chart,
    );
    chart(&b"a;".repeat(100_000));
}

#[test]
fn files_of_other_tools() {
    for entry in fs::read_dir(OTHER_TOOLS).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            continue;
        }
        let whole = fs::read(&path).unwrap();
        let options = ReadOptions {
            threads: Threads::Each,
            ..ReadOptions::default()
        };
        assert!(rewritten(&whole, &options), "{}", path.display());
        damage(&whole, |bytes| drop(read(bytes, &options)));
    }
}

#[test]
fn any_bytes_as_any_format() {
    let bytes: Vec<u8> = (0..300_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for start in 0..bytes.len() {
        for format in std::iter::once(None).chain(Format::all().map(Some)) {
            drop(read(&bytes[start..], &ReadOptions::of(format)));
        }
    }
}
