//! The committed header is what the sources give.

mod generated;

#[test]
fn the_header_is_that_of_the_sources() {
    let committed = include_str!("../include/silvan.h");
    assert!(
        committed == generated::header(),
        "include/silvan.h is not what the sources give: run `make header`"
    );
}
