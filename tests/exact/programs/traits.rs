//! Generics, closures and trait methods, as the Rust compiler names them.
use std::collections::HashMap;
use std::time::Instant;

#[inline(never)]
fn count<T: std::hash::Hash + Eq + Clone>(seen: &mut HashMap<T, u64>, key: &T) -> u64 {
    (0..2000).map(|i| { *seen.entry(key.clone()).or_insert(0) += i; i }).sum()
}

fn main() {
    let (mut seen, start) = (HashMap::new(), Instant::now());
    let mut sum = 0;
    while start.elapsed().as_millis() < 1000 {
        sum += count(&mut seen, &"abc".to_string());
    }
    std::process::exit((sum == 1) as i32);
}
