//! What a session does besides recording: check a host (`doctor`), remove leftovers (`clean`), try one process first
//! (`canary`).

pub mod canary;
pub mod clean;
pub mod doctor;
