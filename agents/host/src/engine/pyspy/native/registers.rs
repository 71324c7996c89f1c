//! What a walk up the stack needs of the registers, by processor.

use framehop::UnwindRegsNative;
use nix::libc::user_regs_struct;

/// The stack pointer, the code's address, and all that a walk up the stack needs.
#[cfg(target_arch = "x86_64")]
pub fn unwind_registers(all: &user_regs_struct) -> (u64, u64, UnwindRegsNative) {
    let registers = UnwindRegsNative::new(all.rip, all.rsp, all.rbp);
    (all.rsp, all.rip, registers)
}

#[cfg(target_arch = "aarch64")]
pub fn unwind_registers(all: &user_regs_struct) -> (u64, u64, UnwindRegsNative) {
    // The upper bits of a return address may be a signature.
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address((1 << 48) - 1);
    let (frame, link) = (all.regs[29], all.regs[30]);
    let registers = UnwindRegsNative::new_with_ptr_auth_mask(mask, link, all.sp, frame);
    (all.sp, all.pc, registers)
}

/// The caller of a trampoline of Python's, which it makes at run time where it was told to support perf. It only puts
/// eight bytes on the stack. None: it keeps a frame pointer.
#[cfg(target_arch = "x86_64")]
pub fn leave_trampoline(
    registers: &mut UnwindRegsNative,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    let (pointer, frame) = (registers.sp(), registers.bp());
    let caller = read(pointer.checked_add(8)?)
        .ok()
        .filter(|_| pointer != frame)?;
    *registers = UnwindRegsNative::new(caller, pointer + 16, frame);
    Some(caller)
}

#[cfg(target_arch = "aarch64")]
pub fn leave_trampoline(
    _: &mut UnwindRegsNative,
    _: impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    None
}
