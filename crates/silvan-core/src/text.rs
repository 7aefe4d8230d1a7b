/// Text in UTF-8, or in UTF-16 with a byte order mark (PowerShell); invalid bytes, as in names of nodes, become U+FFFD.
pub fn decode_text(bytes: Vec<u8>) -> String {
    let unit: fn([u8; 2]) -> u16 = match bytes.as_slice() {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => {
            return String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
    };
    let pairs = bytes[2..].chunks(2).map(|pair| match *pair {
        [first, second] => unit([first, second]),
        // A file that is cut off within a unit.
        _ => 0xfffd,
    });
    char::decode_utf16(pairs)
        .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the encoder of the standard library, and the definition of the byte order marks.
    #[test]
    fn text_of_either_byte_order_is_read() {
        let text = "Switch\t36 \"S-1\" # \"blätt-\u{1f427}\"\r\n";
        let encoded = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(order).collect()
        };
        assert_eq!(decode_text(encoded(u16::to_le_bytes)), text);
        assert_eq!(decode_text(encoded(u16::to_be_bytes)), text);
        assert_eq!(decode_text(text.as_bytes().to_vec()), text);
        assert_eq!(decode_text(vec![0xff, 0xfe, b'a', 0, b'b']), "a\u{fffd}");
        assert_eq!(decode_text(vec![b'a', 0xe4, b'b']), "a\u{fffd}b");
    }
}
