//! What a session does besides recording: check a host (`doctor`) and remove leftovers (`clean`).

pub mod clean;
pub mod doctor;
