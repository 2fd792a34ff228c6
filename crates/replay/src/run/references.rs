//! Distinguishes values that name an object, such as ids, from words and quantities.

pub(super) use crate::value_patterns::{is_of_word, moment_length};

/// Minimum length of a word that counts as a name without a digit.
const SHORTEST_WORD: usize = 4;
/// Minimum length of a text that counts as a token regardless of its characters.
const LONG: usize = 20;
/// Minimum length of a text with a digit that cannot plausibly occur twice by chance.
const TOKEN: usize = 16;
/// Numbers below this limit are often quantities.
const SMALL: u64 = 1000;
/// Maximum number of digits in a serial id, which a server may reuse for another object in the next run.
const SERIAL_DIGITS: usize = 7;

const QUANTITIES: [&str; 27] = [
    "amount", "count", "counts", "depth", "duration", "height", "length", "level", "limit", "max", "min", "n",
    "offset", "page", "pages", "pagesize", "per_page", "port", "price", "priority", "qty", "quantity", "seconds",
    "size", "timeout", "total", "width",
];
const REFERENCES: [&str; 10] = ["id", "ids", "key", "number", "uuid", "token", "cursor", "handle", "ref", "uri"];

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty())
}

/// Returns `true` for a member that holds a quantity.
pub(super) fn is_quantity(member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    QUANTITIES.contains(&&*member) || ["count", "total", "size", "length"].iter().any(|end| member.ends_with(end))
}

/// Returns `true` for a member that holds a timestamp.
pub(super) fn is_moment_name(member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    ["at", "time", "date", "stamp", "created", "updated", "modified", "ms"].iter().any(|end| member.ends_with(end))
}

/// Returns `true` for a number that may name an object. A small number does so only if its member's name says so.
pub(super) fn is_numbered(member: &str, number: &str) -> bool {
    let member = member.to_ascii_lowercase();
    number.parse::<i64>().is_ok_and(|number| {
        number.unsigned_abs() >= SMALL || ["id", "key", "number"].iter().any(|end| member.ends_with(end))
    })
}

/// Returns `true` for a value that looks like an id, by its form or its member's name.
pub(super) fn is_id_like(value: &str, member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    let inner = value.trim_matches(|c| matches!(c, '-' | '_'));
    value.bytes().any(|byte| byte.is_ascii_digit())
        || inner.contains(['-', '_'])
        || value.len() >= LONG
        || REFERENCES.iter().any(|end| member.ends_with(end))
}

/// Returns `true` for a number or a name that ends in one. A server may reuse such an id for another object.
pub(super) fn is_serial(value: &str) -> bool {
    let digits = value.bytes().rev().take_while(u8::is_ascii_digit).count();
    (1..=SERIAL_DIGITS).contains(&digits) && value.len() < TOKEN && !is_hexadecimal(value)
}

/// Returns `true` if the last word mixes letters and digits, unlike a counter.
fn is_hexadecimal(value: &str) -> bool {
    let last = value.rsplit(['-', '_']).next().unwrap_or_default();
    last.len() >= 8
        && last.bytes().any(|byte| byte.is_ascii_alphabetic())
        && last.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns `true` for a text that cannot plausibly occur twice by chance.
pub(super) fn is_token(value: &str) -> bool {
    value.len() >= TOKEN && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the parts of a request's text that may name an object: the whole text and its words.
pub(super) fn named_in(text: &str) -> impl Iterator<Item = &str> {
    let is_prose = text.contains(char::is_whitespace);
    let is_name = move |word: &&str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        // A number within a sentence is usually a quantity.
        word.len() >= SHORTEST_WORD && !(is_prose && is_number)
            || !is_prose && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let whole = (text.len() > 1 || text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text);
    whole.into_iter().chain(words(text).filter(is_name).filter(move |word| *word != text))
}

/// Returns `true` for a number in a request that may name an object.
pub(super) fn names_by_number(member: &str, number: &str) -> bool {
    !is_quantity(member) && number.parse::<i64>().is_ok()
}
