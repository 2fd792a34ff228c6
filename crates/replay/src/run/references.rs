//! Tells values that name something, such as ids, from words and quantities.

pub(super) use crate::value_patterns::{is_of_word, moment_length};

/// Shortest word of a path that is taken for a name, unless it has a digit.
const SHORTEST_WORD: usize = 4;
/// Shortest text that is taken for a token whatever it is made of.
const LONG: usize = 20;
/// Shortest text with a digit that nothing but chance makes twice.
const TOKEN: usize = 16;
/// Numbers below this are often quantities.
const SMALL: u64 = 1000;
/// Most digits of a number that a server may give to another object in the next run.
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

/// True for a member that holds a number of something.
pub(super) fn is_quantity(member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    QUANTITIES.contains(&&*member) || ["count", "total", "size", "length"].iter().any(|end| member.ends_with(end))
}

/// True for a member that holds a moment.
pub(super) fn is_moment_name(member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    ["at", "time", "date", "stamp", "created", "updated", "modified", "ms"].iter().any(|end| member.ends_with(end))
}

/// True for a number that may name something: a small one does so only where its member says it.
pub(super) fn is_numbered(member: &str, number: &str) -> bool {
    let member = member.to_ascii_lowercase();
    number.parse::<i64>().is_ok_and(|number| {
        number.unsigned_abs() >= SMALL || ["id", "key", "number"].iter().any(|end| member.ends_with(end))
    })
}

/// True for a value that names something by its form or by its member, rather than being a word of a language.
pub(super) fn is_id_like(value: &str, member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    let inner = value.trim_matches(|c| matches!(c, '-' | '_'));
    value.bytes().any(|byte| byte.is_ascii_digit())
        || inner.contains(['-', '_'])
        || value.len() >= LONG
        || REFERENCES.iter().any(|end| member.ends_with(end))
}

/// True for an id that a server may give to another object in the next run: a number, or a name that ends in one.
pub(super) fn is_serial(value: &str) -> bool {
    let digits = value.bytes().rev().take_while(u8::is_ascii_digit).count();
    (1..=SERIAL_DIGITS).contains(&digits) && value.len() < TOKEN && !is_hexadecimal(value)
}

/// True for a text whose last word mixes letters and digits as no counter does.
fn is_hexadecimal(value: &str) -> bool {
    let last = value.rsplit(['-', '_']).next().unwrap_or_default();
    last.len() >= 8
        && last.bytes().any(|byte| byte.is_ascii_alphabetic())
        && last.bytes().any(|byte| byte.is_ascii_digit())
}

/// True for a text that only chance would make twice.
pub(super) fn is_token(value: &str) -> bool {
    value.len() >= TOKEN && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// The values of a text of a request that may name something: the text itself, and its words.
pub(super) fn named_in(text: &str) -> impl Iterator<Item = &str> {
    let is_prose = text.contains(char::is_whitespace);
    let is_name = move |word: &&str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        // A number within a sentence is a quantity more often than a name.
        word.len() >= SHORTEST_WORD && !(is_prose && is_number)
            || !is_prose && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let whole = (text.len() > 1 || text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text);
    whole.into_iter().chain(words(text).filter(is_name).filter(move |word| *word != text))
}

/// True for a number of a request that may name something.
pub(super) fn names_by_number(member: &str, number: &str) -> bool {
    !is_quantity(member) && number.parse::<i64>().is_ok()
}
