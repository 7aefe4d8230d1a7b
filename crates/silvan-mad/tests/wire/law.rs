//! Properties of any 256 bytes; the fuzz targets include this file, too.

use silvan_mad::{MAD_LEN, Mad, MadError, Packet};

/// Parses the bytes and checks that what was understood comes back.
///
/// # Panics
/// If it does not.
pub fn check(bytes: &[u8; MAD_LEN]) -> Result<Mad, MadError> {
    let packet = Packet::new(bytes);
    let mad = Mad::parse(&packet)?;
    let emitted = mad.emit();
    let again = Mad::parse(&Packet::new(&emitted))?;
    assert_eq!(again, mad, "the same value from what was emitted");
    assert_eq!(again.emit(), emitted, "the same bytes from the same value");
    // Only reserved bits may differ, and only by being cleared.
    for (at, (&came, &went)) in bytes.iter().zip(&emitted).enumerate() {
        assert_eq!(
            went & !came,
            0,
            "byte {at} gained bits: {came:#x} to {went:#x}"
        );
    }
    Ok(mad)
}
