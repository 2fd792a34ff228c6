//! Punycode encoding of international host name labels (RFC 3492).

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

/// Converts a label of a host name to lower-case ASCII: `bücher` becomes `xn--bcher-kva`. Returns `None` if it is too
/// long.
#[must_use]
pub fn ascii_label(label: &str) -> Option<String> {
    let lower = label.to_lowercase();
    if lower.is_ascii() {
        return Some(lower);
    }
    let letters: Vec<u32> = lower.chars().map(u32::from).collect();
    let mut out: String = lower.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (INITIAL_N, 0_u32, INITIAL_BIAS, basic);
    while (handled as usize) < letters.len() {
        let next = letters.iter().copied().filter(|letter| *letter >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for letter in &letters {
            if *letter < n {
                delta = delta.checked_add(1)?;
            }
            if *letter == n {
                push_number(&mut out, delta, bias);
                bias = adapt(delta, handled + 1, handled == basic);
                (delta, handled) = (0, handled + 1);
            }
        }
        (delta, n) = (delta.checked_add(1)?, n.checked_add(1)?);
    }
    Some(format!("xn--{out}"))
}

/// Appends a number as a variable-length integer.
fn push_number(out: &mut String, number: u32, bias: u32) {
    let digit = |value: u32| char::from_digit(value, BASE).unwrap_or('0');
    let (mut rest, mut k) = (number, BASE);
    loop {
        let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < threshold {
            break;
        }
        out.push(punycode_digit(threshold + (rest - threshold) % (BASE - threshold), digit));
        rest = (rest - threshold) / (BASE - threshold);
        k += BASE;
    }
    out.push(punycode_digit(rest, digit));
}

/// Returns a digit. They are `a` to `z` and then `0` to `9`.
fn punycode_digit(value: u32, digit: impl Fn(u32) -> char) -> char {
    if value < 26 { digit(value + 10) } else { digit(value - 26) }
}

fn adapt(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_rfc_3492_and_of_registries() {
        for (label, ascii) in [
            ("example", "example"),
            ("Bücher", "xn--bcher-kva"),
            ("münchen", "xn--mnchen-3ya"),
            ("例え", "xn--r8jz45g"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
            ("почемужеонинеговорятпорусски", "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l"),
        ] {
            assert_eq!(ascii_label(label).as_deref(), Some(ascii));
        }
    }
}
