//! Prints the C header that the sources give; `make header` writes it to `include/silvan.h`.

use std::io::Write;

#[path = "../tests/generated/mod.rs"]
mod generated;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(generated::header().as_bytes())
}
