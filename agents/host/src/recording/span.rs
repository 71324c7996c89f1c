use std::time::{Duration, Instant};

/// With less time left nobody joins.
const LEAST: Duration = Duration::from_millis(500);

/// The time that the recordings of a session have in common.
pub struct Span {
    duration: Duration,
    begun: Option<Instant>,
    /// It was ended early.
    stopped: bool,
    /// Others may join until its end, so it lasts even if no process is left.
    pub followed: bool,
}

impl Span {
    pub fn new(seconds: f64) -> Self {
        Self {
            duration: Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)),
            begun: None,
            stopped: false,
            followed: false,
        }
    }

    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    pub fn stop(&mut self) {
        self.stopped = true;
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The planned end. None: it has not begun.
    pub fn end(&self) -> Option<Instant> {
        Some(self.begun? + self.duration)
    }

    pub fn left(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        match self.stopped {
            true => Duration::ZERO,
            false => self.end().map_or(self.duration, left),
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Whether others may join.
    pub fn is_open(&self) -> bool {
        self.begun.is_some() && self.left() >= LEAST
    }
}
