//! What a session does besides recording: check a host (`doctor`), remove leftovers (`clean`).

pub mod clean;
pub mod doctor;
