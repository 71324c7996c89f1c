//! What a session does besides recording: check a host (`doctor`), print threads (`dump`) and remove leftovers
//! (`clean`).

pub mod clean;
pub mod doctor;
pub mod dump;
