//! One session: requests in, events out. It holds the lease, and resumes over a second connection.

pub mod backlog;
pub mod inbox;
pub mod output;
pub mod resume;
pub mod run;
