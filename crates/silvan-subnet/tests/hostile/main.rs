//! A hostile subnet, and hostile clients of the metrics.

mod law;

use proptest::prelude::*;

#[test]
fn right_answers_are_found() {
    law::play(&[]);
}

proptest! {
    #[test]
    fn changed_answers_contradict_nothing(drawn in prop::collection::vec(any::<u8>(), 0..2000)) {
        law::play(&drawn);
    }

    #[test]
    fn endpoint_survives_any_request(
        mut parts in prop::collection::vec(
            prop_oneof![
                Just("GET /metrics HTTP/1.1\r\n".to_owned()),
                Just("host: localhost\r\n".to_owned()),
                Just("accept: text/plain;q=".to_owned()),
                Just("content-length: 9\r\n\r\n".to_owned()),
                "[ -~\r\n\u{0}\u{ff}]{0,40}",
            ],
            0..6,
        ),
        ends: bool,
    ) {
        if ends {
            parts.push("\r\n\r\n".to_owned());
        }
        law::request(parts.concat().as_bytes());
    }
}
