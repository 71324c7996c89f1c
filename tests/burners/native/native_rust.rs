//! A thread called rust-worker-1 that spends its CPU time in known shares: 50 % in the generic `hot::<u64>`, 30 % in the
//! trait method `Warm::burn`, 20 % in a closure. Protocol as in Burner.java; the argument is the load, 0.5 of a core.
use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static USED: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
const PERCENT: [u64; 3] = [50, 30, 20];
const ROUND: u64 = 50_000;

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanos: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut TimeSpec) -> i32;
}

/// CPU time of this thread.
fn cpu() -> u64 {
    clock(3)
}

/// CPU time of the process (2) or of this thread (3).
fn clock(number: i32) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: the structure is that of 64-bit Linux, and these clocks are always there.
    unsafe { clock_gettime(number, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

#[inline(never)]
fn hot<T: Into<u64> + Copy>(seed: T, until: u64) {
    while cpu() < until {
        let x = (0..ROUND).fold(seed.into(), |x, _| std::hint::black_box(x.wrapping_mul(6364136223846793005) + 1));
        std::hint::black_box(x);
    }
}

trait Burn {
    fn burn(&self, until: u64);
}

struct Warm;

impl Burn for Warm {
    #[inline(never)]
    fn burn(&self, until: u64) {
        while cpu() < until {
            let x = (0..ROUND).fold(until | 1, |x, _| std::hint::black_box((x ^ (x << 13)).wrapping_add(x >> 7)));
            std::hint::black_box(x);
        }
    }
}

#[inline(never)]
fn through(closure: &dyn Fn(u64), until: u64) {
    closure(until);
    std::hint::black_box(until);
}

fn behind() -> usize {
    let used = |kind: usize| USED[kind].load(Ordering::Relaxed);
    (1..3).fold(0, |least, kind| if used(kind) * PERCENT[least] < used(least) * PERCENT[kind] { kind } else { least })
}

fn work(load: f64) {
    let (begin, first) = (Instant::now(), cpu());
    let mut random = begin.elapsed().as_nanos() as u64 | 1;
    loop {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (kind, before) = (behind(), cpu());
        let until = before + 400_000 + (random >> 33) % 1_400_000;
        match kind {
            0 => hot(until, until),
            1 => Warm.burn(until),
            _ => through(&|until| while cpu() < until { std::hint::black_box((0..ROUND).map(std::hint::black_box).sum::<u64>()); }, until),
        }
        USED[kind].fetch_add(cpu() - before, Ordering::Relaxed);
        let due = Duration::from_nanos(((cpu() - first) as f64 / load) as u64);
        if due > begin.elapsed() + Duration::from_millis(5) {
            std::thread::sleep(due - begin.elapsed());
        }
    }
}

fn report() {
    let used: Vec<u64> = USED.iter().map(|used| used.load(Ordering::Relaxed)).collect();
    println!("counters hot={} warm={} closure={} process.ns={}", used[0], used[1], used[2], clock(2));
}

fn main() {
    let load = std::env::args().nth(1).map_or(0.5, |load| load.parse().expect("a load"));
    std::thread::Builder::new().name("rust-worker-1".into()).spawn(move || work(load)).expect("a thread");
    println!("ready pid={}", std::process::id());
    for _ in std::io::stdin().lock().lines() {
        report();
    }
    report();
}
