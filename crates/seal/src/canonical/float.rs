//! Floats in the forms of both profiles: shortest binary, and text with 8 decimals.

use std::fmt::Write as _;

/// Bits of the shortest CBOR float that represents a value exactly.
pub(super) enum Shortest {
    /// IEEE 754 half precision, 16 bits.
    Half(u16),
    /// IEEE 754 single precision, 32 bits.
    Single(u32),
    /// IEEE 754 double precision, 64 bits.
    Double(u64),
}

/// Returns the shortest form of a finite number.
#[expect(clippy::cast_possible_truncation, reason = "a value that changes is noticed by the comparison of bits")]
pub(super) fn shortest(number: f64) -> Shortest {
    let single = number as f32;
    if f64::from(single).to_bits() != number.to_bits() {
        return Shortest::Double(number.to_bits());
    }
    half(single).map_or(Shortest::Single(single.to_bits()), Shortest::Half)
}

/// Smallest magnitude from which all doubles are integers: 2^53.
const WHOLE: f64 = 9_007_199_254_740_992.0;
/// Number of 32-bit words in the largest double, 2^1024.
const WORDS: usize = 32;
/// Decimal digits produced by one division.
const DIGITS: usize = 9;
const TEN_TO_DIGITS: u64 = 1_000_000_000;
/// Number of digit groups in the largest double.
const MAX_GROUPS: usize = 35;

/// Formats a finite number with 8 decimals, like `{:.8}`.
///
/// The standard library computes each of up to 309 digits separately, which takes some 40 microseconds. Unauthenticated
/// senders choose the numbers, so the digits of large ones are computed nine at a time here.
pub(super) fn fixed_point(number: f64) -> String {
    if number.abs() < WHOLE {
        return format!("{number:.8}");
    }
    let bits = number.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let exponent = usize::try_from((bits >> 52 & 0x7ff).saturating_sub(1075)).unwrap_or(0);
    let mut words = [0_u32; WORDS + 2];
    let (word, shifted) = (exponent / 32, u128::from(mantissa) << (exponent % 32));
    for (place, part) in words.iter_mut().skip(word).zip(0..3) {
        *place = (shifted >> (32 * part)) as u32;
    }
    let mut groups = Vec::with_capacity(MAX_GROUPS);
    let mut length = words.len();
    while length > 0 {
        let mut rest = 0;
        for word in words.iter_mut().take(length).rev() {
            let part = rest << 32 | u64::from(*word);
            *word = (part / TEN_TO_DIGITS) as u32;
            rest = part % TEN_TO_DIGITS;
        }
        groups.push(rest);
        while length > 0 && words.get(length - 1) == Some(&0) {
            length -= 1;
        }
    }
    let mut text = String::with_capacity(groups.len() * DIGITS + DIGITS + 1);
    if number < 0.0 {
        text.push('-');
    }
    // Writing to a string does not fail.
    let _ = write!(text, "{}", groups.pop().unwrap_or(0));
    for group in groups.iter().rev() {
        let _ = write!(text, "{group:09}");
    }
    text.push_str(".00000000");
    text
}

/// Converts a finite single to a half, if that is exact.
fn half(single: f32) -> Option<u16> {
    let bits = single.to_bits();
    let sign = u16::try_from(bits >> 16 & 0x8000).ok()?;
    let exponent = i32::try_from(bits >> 23 & 0xff).ok()? - 127;
    let fraction = bits & 0x007f_ffff;
    match exponent {
        -127 => (fraction == 0).then_some(sign),
        // A subnormal half is its ten bits times 2^-24; the leading one of the single is among them.
        -24..=-15 => {
            let whole = fraction | 0x0080_0000;
            let dropped = u32::try_from(-1 - exponent).ok()?;
            (whole.trailing_zeros() >= dropped).then(|| u16::try_from(whole >> dropped).ok().map(|bits| sign | bits))?
        }
        -14..=15 => {
            let biased = u16::try_from(exponent + 15).ok()?;
            (fraction & 0x1fff == 0)
                .then(|| u16::try_from(fraction >> 13).ok().map(|bits| sign | biased << 10 | bits))?
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a half, as RFC 8949 appendix D computes it.
    fn value(half: u16) -> f64 {
        let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f64::from(half & 0x3ff));
        let value = match exponent {
            0 => fraction * 2_f64.powi(-24),
            _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
        };
        if half & 0x8000 == 0 { value } else { -value }
    }

    #[test]
    fn large_numbers_have_the_digits_of_the_standard_library() {
        let powers = (0..1024).map(|power| 2_f64.powi(power)).chain((0..309).map(|power| 10_f64.powi(power)));
        let near =
            |number: f64| (-2..3).map(move |away: i64| f64::from_bits(number.to_bits().wrapping_add_signed(away)));
        for number in powers.flat_map(near).chain([f64::MAX]).filter(|number| number.is_finite()) {
            assert_eq!(fixed_point(number), format!("{number:.8}"));
            assert_eq!(fixed_point(-number), format!("{:.8}", -number));
        }
    }

    #[test]
    fn every_finite_half_is_found_and_nothing_between_two_is() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7c00 != 0x7c00) {
            let number = value(bits);
            assert!(matches!(shortest(number), Shortest::Half(found) if found == bits), "{bits:04x} is {number}");
            let beside = f64::from(f32::from_bits((number as f32).to_bits() ^ 1));
            assert!(matches!(shortest(beside), Shortest::Single(_)), "{beside:e}");
            let beside = f64::from_bits(number.to_bits() ^ 1);
            assert!(matches!(shortest(beside), Shortest::Double(_)), "{beside:e}");
        }
        assert!(matches!(shortest(65_536.0), Shortest::Single(_)), "one above the largest half");
    }
}
