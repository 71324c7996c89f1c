//! What a session does besides recording: check a host (`doctor`), print threads (`dump`), say where the memory
//! of processes is (`memory`) and remove leftovers (`clean`).

pub mod clean;
pub mod doctor;
pub mod dump;
pub mod memory;
