//! Generates made-up secrets for the examples of the rules.
//!
//! The rule files contain no text that looks like a secret, because other scanners would take it for a live one:
//! `{hex:32}` stands for 32 hex digits that are always the same for one seed, and `«` and `»` enclose the secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;

/// An example with a generated secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// Example with the generated characters.
    pub text: String,
    /// Range of the secret within the text.
    pub secret: Range<usize>,
}

const DIGITS: &str = "0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";

/// Replaces placeholders by generated characters.
#[must_use]
pub fn example(text: &str, seed: &str) -> Example {
    let mut random = Random::new(seed);
    let mut out = String::new();
    let mut secret = None;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '«' => {
                secret = Some((out.len(), out.len()));
                next.len_utf8()
            }
            '»' => {
                secret = secret.map(|(start, _)| (start, out.len()));
                next.len_utf8()
            }
            '{' => match placeholder(rest, &mut random) {
                Some((made, length)) => {
                    out.push_str(&made);
                    length
                }
                None => {
                    out.push('{');
                    1
                }
            },
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    let (start, end) = secret.unwrap_or((0, out.len()));
    Example { text: out, secret: start..end }
}

/// Returns the expansion of the placeholder at the start of `text`, and the length of the placeholder.
fn placeholder(text: &str, random: &mut Random) -> Option<(String, usize)> {
    let end = text.find('}')?;
    let inside = text.get(1..end)?;
    if inside == "uuid" {
        let parts = [8, 4, 4, 4, 12].map(|length| random.take("0123456789abcdef", length));
        return Some((parts.join("-"), end + 1));
    }
    let (kind, argument) = inside.split_once(':')?;
    if kind == "b64" {
        return Some((STANDARD.encode(argument), end + 1));
    }
    let letters = match kind {
        "hex" => "0123456789abcdef".to_owned(),
        "HEX" => "0123456789ABCDEF".to_owned(),
        "digits" => "123456789".to_owned(),
        "letters" => format!("{LOWER}{UPPER}"),
        "base32" => format!("{UPPER}234567"),
        "base32lower" => format!("{LOWER}234567"),
        "base36" => format!("{LOWER}{DIGITS}"),
        "BASE36" => format!("{UPPER}{DIGITS}"),
        "base58" => format!("{}{}123456789", LOWER.replace('l', ""), UPPER.replace(['I', 'O'], "")),
        "base62" => format!("{LOWER}{UPPER}{DIGITS}"),
        "base64" => format!("{LOWER}{UPPER}{DIGITS}+/"),
        "base64url" => format!("{LOWER}{UPPER}{DIGITS}-_"),
        "bech32" => BECH32.to_owned(),
        "bech32lower" => BECH32.to_ascii_lowercase(),
        _ => return None,
    };
    Some((random.take(&letters, argument.parse().ok()?), end + 1))
}

/// Generator of numbers that depend only on the seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Self(seed.bytes().fold(0xCBF2_9CE4_8422_2325, mix) | 1)
    }

    /// Returns a number below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound.max(1)
    }

    /// Returns `length` of these letters. The first and last are alphanumeric, so that the ends of a secret are
    /// unambiguous.
    pub fn take(&mut self, letters: &str, length: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let plain: Vec<char> = letters.iter().copied().filter(char::is_ascii_alphanumeric).collect();
        let pick = |at: usize| {
            let from = if at == 0 || at + 1 == length { &plain } else { &letters };
            from.get(self.below(from.len())).copied()
        };
        (0..length).filter_map(pick).collect()
    }
}
