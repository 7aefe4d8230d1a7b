//! The C header, made of the sources.

use std::path::Path;

pub fn header() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"));
    let sources = ["types.rs", "interface.rs"].map(|name| folder.join("src").join(name));
    let builder = sources.into_iter().fold(
        cbindgen::Builder::new().with_config(config.expect("cbindgen.toml is valid")),
        cbindgen::Builder::with_src,
    );
    let bindings = builder.generate().expect("the sources have a C interface");
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).expect("sources are UTF-8");
    // Rust has a heading for what a caller must see to.
    text.replace("// # Safety\n", "// The caller sees to this:\n")
}
