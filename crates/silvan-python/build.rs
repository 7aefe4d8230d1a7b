//! Builds the preload library of the live fabric, which is loaded into other programs, so it is a library of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=../silvan-shim/src");
    println!("cargo::rerun-if-changed=../silvan-shim/Cargo.toml");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let library = out.join("libsilvan_shim.so");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        fs::write(library, "").expect("the output folder can be written");
        return;
    }
    let target = env::var("TARGET").expect("cargo sets it");
    // A folder of its own: cargo has locked the one that it builds in.
    let folder = out.join("shim");
    let manifest = Path::new("../silvan-shim/Cargo.toml");
    let status = Command::new(env::var_os("CARGO").expect("cargo sets it"))
        .args(["rustc", "--release", "--lib", "--quiet", "--manifest-path"])
        .arg(manifest)
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        .args(["--config", "profile.release.strip=true"])
        .args(["--config", "profile.release.panic='abort'"])
        .args(["--config", "profile.release.opt-level='s'"])
        .args([
            "--config",
            "profile.release.lto=true",
            "--crate-type",
            "cdylib",
        ])
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the preload library has not been built");
    let built = folder.join(target).join("release/libsilvan_shim.so");
    fs::copy(built, library).expect("the library can be copied");
}
