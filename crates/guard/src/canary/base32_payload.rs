//! Checkable part of a canary in letters and digits.

use super::canary_key::PayloadLayout;
use super::{CanaryId, CanaryKey};
use std::ops::{ControlFlow, Range};

/// Letters and digits, of which none is taken for another.
const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Number of bits that a digit carries.
const BITS: u32 = 5;
/// Number of digits of a checkable part.
const LENGTH: usize = 20;
pub(super) const LAYOUT: PayloadLayout = PayloadLayout { domain: 1, id_bits: 48, quick_bits: 12 };

const _: () = assert!(LAYOUT.bits() == BITS * LENGTH as u32);

/// Values of bytes as digits of either case; 0xff for other bytes.
const VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        values[DIGITS[value].to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    values
};

/// Returns the checkable part for an id.
pub(super) fn write(key: &CanaryKey, id: CanaryId) -> String {
    let payload = key.payload(LAYOUT, id);
    let digit = |index: u32| DIGITS.get((payload >> (index * BITS)) as usize & 31).map(|digit| char::from(*digit));
    (0..LENGTH as u32).rev().filter_map(digit).collect()
}

/// Calls `visit` with each genuine checkable part of a text.
pub(super) fn scan(
    text: &str,
    key: &CanaryKey,
    visit: &mut dyn FnMut(Range<usize>, CanaryId) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut payload, mut length) = (0_u128, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        let value = VALUES.get(usize::from(byte)).copied().unwrap_or(0xff);
        if value == 0xff {
            length = 0;
            continue;
        }
        payload = (payload << BITS | u128::from(value)) & ((1 << LAYOUT.bits()) - 1);
        length += 1;
        if length >= LENGTH
            && let Some(id) = key.open(LAYOUT, payload)
        {
            visit(at + 1 - LENGTH..at + 1, id)?;
        }
    }
    ControlFlow::Continue(())
}
