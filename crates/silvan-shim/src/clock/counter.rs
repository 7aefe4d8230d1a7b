//! The time-stamp counter in simulated time: the kernel lets `rdtsc` fail, and the handler of SIGSEGV gives the value.
//!
//! A program that is executed would inherit the setting, and end by it in the loader, before it has the handler. So the
//! setting is undone before, and in forked processes. Programs may set a handler of their own, which gets all other faults. Threads inherit the setting from the one that
//! starts them.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{sighandler_t, sigset_t};

use super::{NS_PER_S, now_ps, read};
use crate::real;
use crate::verbs::lock;

static IS_TRAPPED: AtomicBool = AtomicBool::new(false);
static OTHER: Mutex<Option<libc::sigaction>> = Mutex::new(None);

const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// The counter of programs that have RDMA libraries from the start, and of MPI's ranks, shows simulated time at once.
pub(crate) fn trap_early() {
    // A program that an attached one starts may inherit the setting.
    set(PR_TSC_ENABLE);
    let is_rank = RANKS.iter().any(|name| std::env::var_os(name).is_some());
    // SAFETY: the name ends with a zero; nothing is loaded.
    let is_linked = || unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let library = libc::dlopen(c"libibverbs.so.1".as_ptr(), flags);
        if !library.is_null() {
            libc::dlclose(library);
        }
        !library.is_null()
    };
    if super::is_simulated() && (is_rank || is_linked()) {
        trap();
    }
}

const PR_SET_TSC: c_int = 26;
const PR_TSC_ENABLE: c_int = 1;
const PR_TSC_SIGSEGV: c_int = 2;

fn set(state: c_int) {
    if cfg!(target_arch = "x86_64") {
        // SAFETY: the call has no other effect.
        unsafe { libc::syscall(libc::SYS_prctl, PR_SET_TSC, state, 0, 0, 0) };
    }
}

/// Makes this thread's counter, and that of threads that it starts, show simulated time.
pub(crate) fn trap() {
    if !cfg!(target_arch = "x86_64") || !super::is_simulated() {
        return;
    }
    if !IS_TRAPPED.swap(true, Ordering::AcqRel) {
        // SAFETY: all bits zero are a valid action; the handler has the type that its flags state.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(_, _, _) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            let mut other: libc::sigaction = std::mem::zeroed();
            (real::sigaction())(libc::SIGSEGV, &raw const action, &raw mut other);
            *lock(&OTHER) = Some(other);
            libc::pthread_atfork(None, None, Some(release));
        }
    }
    set(PR_TSC_SIGSEGV);
}

extern "C" fn release() {
    set(PR_TSC_ENABLE);
}

macro_rules! executing {
    ($($name:ident($($value:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($value: $type),*) -> $result {
            let is_trapped = IS_TRAPPED.load(Ordering::Acquire);
            if is_trapped {
                set(PR_TSC_ENABLE);
            }
            // SAFETY: the caller keeps the contract of libc's function.
            let result = unsafe { (real::$name())($($value),*) };
            if is_trapped {
                set(PR_TSC_SIGSEGV);
            }
            result
        }
    )*};
}

type Text = *const libc::c_char;
type Texts = *const Text;
type Any = *const libc::c_void;

executing! {
    execve(path: Text, words: Texts, variables: Texts) -> c_int;
    execv(path: Text, words: Texts) -> c_int;
    execvp(path: Text, words: Texts) -> c_int;
    execvpe(path: Text, words: Texts, variables: Texts) -> c_int;
    posix_spawn(process: *mut c_int, path: Text, actions: Any, about: Any, words: Texts, variables: Texts) -> c_int;
    posix_spawnp(process: *mut c_int, path: Text, actions: Any, about: Any, words: Texts, variables: Texts) -> c_int;
    system(command: Text) -> c_int;
    popen(command: Text, mode: Text) -> *mut libc::FILE;
}

extern "C" fn handle(signal: c_int, about: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's context is valid.
    if unsafe { !give_counter(context) } {
        pass_on(signal, about, context);
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn give_counter(context: *mut libc::c_void) -> bool {
    const TRAP_GENERAL_PROTECTION: i64 = 13;
    // SAFETY: as above; the instruction at this address has just been read by the processor.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        if registers[libc::REG_TRAPNO as usize] != TRAP_GENERAL_PROTECTION {
            return false;
        }
        let code = registers[libc::REG_RIP as usize] as usize as *const u8;
        let length = match (*code, *code.add(1)) {
            (0x0f, 0x31) => 2,
            (0x0f, 0x01) if *code.add(2) == 0xf9 => 3,
            _ => return false,
        };
        let value = if is_of_kernel(code as usize) {
            set(PR_TSC_ENABLE);
            let value = std::arch::x86_64::_rdtsc();
            set(PR_TSC_SIGSEGV);
            value
        } else {
            value()
        };
        registers[libc::REG_RAX as usize] = (value & 0xffff_ffff) as i64;
        registers[libc::REG_RDX as usize] = (value >> 32) as i64;
        if length == 3 {
            registers[libc::REG_RCX as usize] = 0;
        }
        registers[libc::REG_RIP as usize] += length;
        true
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn give_counter(_context: *mut libc::c_void) -> bool {
    false
}

/// The kernel's own functions in this process (vDSO) compute with the real counter.
#[cfg(target_arch = "x86_64")]
fn is_of_kernel(code: usize) -> bool {
    const LENGTH: usize = 2 << 12;
    // SAFETY: the call reads the auxiliary vector.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    start != 0 && (start..start + LENGTH).contains(&code)
}

#[cfg(target_arch = "x86_64")]
fn value() -> u64 {
    let words = read();
    let ps = u128::from(words[2]) * 1000 + u128::from(now_ps());
    (ps * u128::from(words[7]) / u128::from(NS_PER_S)) as u64
}

fn pass_on(signal: c_int, about: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let other = lock(&OTHER)
        .as_ref()
        .map(|action| (action.sa_sigaction, action.sa_flags));
    // SAFETY: a program's handler has the type that its flags state; all bits zero are a valid action.
    unsafe {
        match other {
            Some((handler, _)) if handler == libc::SIG_IGN => {}
            Some((handler, flags)) if handler != libc::SIG_DFL => {
                if flags & libc::SA_SIGINFO == 0 {
                    std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
                } else {
                    type Full = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Full>(handler)(signal, about, context);
                }
            }
            _ => {
                // The instruction faults again, and ends the program as usual.
                let usual: libc::sigaction = std::mem::zeroed();
                (real::sigaction())(signal, &raw const usual, std::ptr::null_mut());
            }
        }
    }
}

/// `sigaction` of libc: a handler of SIGSEGV gets what is no access to the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        if signal != libc::SIGSEGV || !IS_TRAPPED.load(Ordering::Acquire) {
            return (real::sigaction())(signal, action, old);
        }
        let mut other = lock(&OTHER);
        if let (false, Some(before)) = (old.is_null(), *other) {
            old.write(before);
        }
        if !action.is_null() {
            *other = Some(*action);
        }
        0
    }
}

/// `signal` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller keeps the contract of libc's function; all bits zero are a valid action.
    unsafe {
        if signal != libc::SIGSEGV || !IS_TRAPPED.load(Ordering::Acquire) {
            return (real::signal())(signal, handler);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        let before = lock(&OTHER).replace(action);
        before.map_or(libc::SIG_DFL, |before| before.sa_sigaction)
    }
}

macro_rules! masks {
    ($($name:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of libc: a blocked SIGSEGV would end the program.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
            // SAFETY: the caller keeps the contract of libc's function.
            unsafe {
                if set.is_null() || how == libc::SIG_UNBLOCK || !IS_TRAPPED.load(Ordering::Acquire) {
                    return (real::$name())(how, set, old);
                }
                let mut set = *set;
                libc::sigdelset(&mut set, libc::SIGSEGV);
                (real::$name())(how, &raw const set, old)
            }
        }
    )*};
}

masks! {
    pthread_sigmask;
    sigprocmask;
}
