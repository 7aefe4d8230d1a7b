use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{DIR, FILE, mode_t, off_t, size_t, ssize_t};

fn next(symbol: &CStr, cache: &AtomicPtr<c_void>) -> *mut c_void {
    let known = cache.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the symbol ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    if found.is_null() {
        // No program can call what its libc does not have.
        std::process::abort();
    }
    cache.store(found, Ordering::Relaxed);
    found
}

/// `pthread_cond_timedwait` of libc, which keeps an older one for programs of 2001.
pub(crate) fn pthread_cond_timedwait()
-> unsafe extern "C" fn(Buffer, Buffer, *const libc::timespec) -> c_int {
    type Function = unsafe extern "C" fn(Buffer, Buffer, *const libc::timespec) -> c_int;
    let version = if cfg!(target_arch = "x86_64") {
        c"GLIBC_2.3.2"
    } else {
        c"GLIBC_2.17"
    };
    let name = c"pthread_cond_timedwait";
    // SAFETY: the strings end with a zero, and libc's function of this name has this type.
    unsafe {
        let found = libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr());
        if found.is_null() {
            std::process::abort();
        }
        std::mem::transmute::<*mut c_void, Function>(found)
    }
}

macro_rules! real {
    ($($name:ident = $symbol:literal: ($($type:ty),*) -> $result:ty;)*) => {$(
        pub(crate) fn $name() -> unsafe extern "C" fn($($type),*) -> $result {
            static CACHE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let found = next($symbol, &CACHE);
            // SAFETY: libc's function of this name has this type.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(found) }
        }
    )*};
}

type Path = *const c_char;
type Buffer = *mut c_void;

real! {
    open = c"open": (Path, c_int, mode_t) -> c_int;
    open64 = c"open64": (Path, c_int, mode_t) -> c_int;
    open_2 = c"__open_2": (Path, c_int) -> c_int;
    open64_2 = c"__open64_2": (Path, c_int) -> c_int;
    openat = c"openat": (c_int, Path, c_int, mode_t) -> c_int;
    openat64 = c"openat64": (c_int, Path, c_int, mode_t) -> c_int;
    openat_2 = c"__openat_2": (c_int, Path, c_int) -> c_int;
    openat64_2 = c"__openat64_2": (c_int, Path, c_int) -> c_int;
    fopen = c"fopen": (Path, Path) -> *mut FILE;
    fopen64 = c"fopen64": (Path, Path) -> *mut FILE;
    fclose = c"fclose": (*mut FILE) -> c_int;
    stat = c"stat": (Path, Buffer) -> c_int;
    stat64 = c"stat64": (Path, Buffer) -> c_int;
    lstat = c"lstat": (Path, Buffer) -> c_int;
    lstat64 = c"lstat64": (Path, Buffer) -> c_int;
    xstat = c"__xstat": (c_int, Path, Buffer) -> c_int;
    xstat64 = c"__xstat64": (c_int, Path, Buffer) -> c_int;
    lxstat = c"__lxstat": (c_int, Path, Buffer) -> c_int;
    lxstat64 = c"__lxstat64": (c_int, Path, Buffer) -> c_int;
    fstatat = c"fstatat": (c_int, Path, Buffer, c_int) -> c_int;
    fstatat64 = c"fstatat64": (c_int, Path, Buffer, c_int) -> c_int;
    fxstatat = c"__fxstatat": (c_int, c_int, Path, Buffer, c_int) -> c_int;
    fxstatat64 = c"__fxstatat64": (c_int, c_int, Path, Buffer, c_int) -> c_int;
    fstat = c"fstat": (c_int, Buffer) -> c_int;
    fstat64 = c"fstat64": (c_int, Buffer) -> c_int;
    fxstat = c"__fxstat": (c_int, c_int, Buffer) -> c_int;
    fxstat64 = c"__fxstat64": (c_int, c_int, Buffer) -> c_int;
    socket = c"socket": (c_int, c_int, c_int) -> c_int;
    sendmsg = c"sendmsg": (c_int, *const libc::msghdr, c_int) -> ssize_t;
    sendto = c"sendto": (c_int, *const c_void, size_t, c_int, *const libc::sockaddr, libc::socklen_t) -> ssize_t;
    send = c"send": (c_int, *const c_void, size_t, c_int) -> ssize_t;
    statx = c"statx": (c_int, Path, c_int, c_uint, Buffer) -> c_int;
    access = c"access": (Path, c_int) -> c_int;
    euidaccess = c"euidaccess": (Path, c_int) -> c_int;
    eaccess = c"eaccess": (Path, c_int) -> c_int;
    faccessat = c"faccessat": (c_int, Path, c_int, c_int) -> c_int;
    readlink = c"readlink": (Path, *mut c_char, size_t) -> ssize_t;
    readlinkat = c"readlinkat": (c_int, Path, *mut c_char, size_t) -> ssize_t;
    chdir = c"chdir": (Path) -> c_int;
    fchdir = c"fchdir": (c_int) -> c_int;
    getcwd = c"getcwd": (*mut c_char, size_t) -> *mut c_char;
    opendir = c"opendir": (Path) -> *mut DIR;
    scandir = c"scandir": (Path, Buffer, *const c_void, *const c_void) -> c_int;
    scandir64 = c"scandir64": (Path, Buffer, *const c_void, *const c_void) -> c_int;
    close = c"close": (c_int) -> c_int;
    read = c"read": (c_int, Buffer, size_t) -> ssize_t;
    read_chk = c"__read_chk": (c_int, Buffer, size_t, size_t) -> ssize_t;
    write = c"write": (c_int, *const c_void, size_t) -> ssize_t;
    pread = c"pread": (c_int, Buffer, size_t, off_t) -> ssize_t;
    pread64 = c"pread64": (c_int, Buffer, size_t, off_t) -> ssize_t;
    lseek = c"lseek": (c_int, off_t, c_int) -> off_t;
    lseek64 = c"lseek64": (c_int, off_t, c_int) -> off_t;
    ioctl = c"ioctl": (c_int, c_ulong, *mut c_void) -> c_int;
    dup = c"dup": (c_int) -> c_int;
    dup2 = c"dup2": (c_int, c_int) -> c_int;
    dup3 = c"dup3": (c_int, c_int, c_int) -> c_int;
    clock_gettime = c"clock_gettime": (libc::clockid_t, *mut libc::timespec) -> c_int;
    clock_nanosleep = c"clock_nanosleep": (libc::clockid_t, c_int, *const libc::timespec, *mut libc::timespec) -> c_int;
    gettimeofday = c"gettimeofday": (*mut libc::timeval, Buffer) -> c_int;
    time = c"time": (*mut libc::time_t) -> libc::time_t;
    pthread_cond_clockwait = c"pthread_cond_clockwait": (Buffer, Buffer, libc::clockid_t, *const libc::timespec) -> c_int;
    pthread_mutex_timedlock = c"pthread_mutex_timedlock": (Buffer, *const libc::timespec) -> c_int;
    sem_timedwait = c"sem_timedwait": (Buffer, *const libc::timespec) -> c_int;
    sem_clockwait = c"sem_clockwait": (Buffer, libc::clockid_t, *const libc::timespec) -> c_int;
    pthread_sigmask = c"pthread_sigmask": (c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
    sigprocmask = c"sigprocmask": (c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
    sigaction = c"sigaction": (c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    signal = c"signal": (c_int, libc::sighandler_t) -> libc::sighandler_t;
    execve = c"execve": (Path, *const Path, *const Path) -> c_int;
    execv = c"execv": (Path, *const Path) -> c_int;
    execvp = c"execvp": (Path, *const Path) -> c_int;
    execvpe = c"execvpe": (Path, *const Path, *const Path) -> c_int;
    posix_spawn = c"posix_spawn": (*mut c_int, Path, *const c_void, *const c_void, *const Path, *const Path) -> c_int;
    posix_spawnp = c"posix_spawnp": (*mut c_int, Path, *const c_void, *const c_void, *const Path, *const Path) -> c_int;
    system = c"system": (Path) -> c_int;
    popen = c"popen": (Path, Path) -> *mut FILE;
    gethostname = c"gethostname": (*mut c_char, size_t) -> c_int;
    uname = c"uname": (*mut libc::utsname) -> c_int;
    fcntl = c"fcntl": (c_int, c_int, c_ulong) -> c_int;
    fcntl64 = c"fcntl64": (c_int, c_int, c_ulong) -> c_int;
}
