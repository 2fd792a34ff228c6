//! Floats in their shortest form.

/// The head byte and the bits of the shortest float of CBOR that holds exactly this value.
pub(super) enum Shortest {
    /// 16 bits.
    Half(u16),
    /// 32 bits.
    Single(u32),
    /// 64 bits.
    Double(u64),
}

/// The shortest form of a finite number.
#[expect(clippy::cast_possible_truncation, reason = "a value that changes is noticed by the comparison of bits")]
pub(super) fn shortest(number: f64) -> Shortest {
    let single = number as f32;
    if f64::from(single).to_bits() != number.to_bits() {
        return Shortest::Double(number.to_bits());
    }
    half(single).map_or(Shortest::Single(single.to_bits()), Shortest::Half)
}

/// A finite single as a half, if that holds exactly its value.
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
