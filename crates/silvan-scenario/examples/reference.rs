//! Prints the reference of scenario keys, or with `--schema` the JSON schema of scenario files.
#![allow(clippy::print_stdout, reason = "printing is what this is for")]

fn main() {
    if std::env::args().any(|argument| argument == "--schema") {
        println!("{:#}", silvan_scenario::json_schema());
    } else {
        print!("{}", silvan_scenario::reference_markdown());
    }
}
