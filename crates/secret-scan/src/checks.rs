//! Checks that a match must pass besides its pattern.

use crate::rule::Check;
use crate::told;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Substrings of placeholders that are not real passwords.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "your",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "redacted",
    "xxxx",
    "****",
    "....",
    "...",
    "dummy",
    "insert",
    "replace",
    "process.env",
    "environ",
    "getenv",
    "undefined",
    "<",
    "${",
    "{{",
    "$(",
    "%(",
    "()",
    "hash:",
    "enc:",
    "self.",
    "this.",
    "args.",
    "config.",
    "settings.",
    "options.",
    "params.",
    "abcd1234",
    "a1b2c3d4",
];
/// Ends of the names of files, which stand where programs read the secret from.
const FILES: &[&str] = &[".json", ".pem", ".key", ".crt", ".p12", ".jks", ".txt", ".yaml", ".yml", ".env"];
/// Values that are words of a language or of a schema.
const WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "none",
    "nil",
    "string",
    "password",
    "passwd",
    "secret",
    "token",
    "required",
    "optional",
    "integer",
    "number",
    "boolean",
    "object",
    "array",
    "bearer",
    "basic",
    "undefined",
    "default",
    "disabled",
    "enabled",
    "pass",
    "passw",
    "pwd",
    "notasecret",
    "testpass",
];

/// Beginnings of values that name a secret in a store.
const REFERENCES: &[&str] = &["arn:aws", "op://", "vault:", "ref+", "{{", "@Microsoft.KeyVault"];

/// Parts of names whose values are positions in a list or request numbers, not secrets.
const OTHER_NAMES: &[&str] = &[
    "page",
    "progress",
    "continuation",
    "cursor",
    "sync",
    "next",
    "count",
    "public",
    "pubkey",
    "pub_key",
    "websocket",
    "cache",
    "idempotency",
    "partition",
    "foreign",
    "primarykey",
    "primary_key",
    "clienttoken",
    "creatortoken",
    "requesttoken",
    "changetoken",
    "locktoken",
];
/// Maximum distance, in bytes, from the start of a name to the match.
const LONGEST_NAME: usize = 40;

/// Returns true if a match passes the check. It begins at `start` of the text.
pub(crate) fn passes(check: Check, secret: &[u8], text: &[u8], start: usize) -> bool {
    match check {
        Check::Mixed => is_mixed(secret),
        Check::Password => is_password(secret),
        Check::Secret => is_secret(secret) && !is_other_name(text, start),
        Check::Basic => is_basic(secret),
        Check::Pairs => has_pair(secret) && !is_placeholder(secret),
        Check::Given => is_given(secret),
        Check::Placed => is_given(secret) && !PLACEHELD.iter().any(|word| secret.eq_ignore_ascii_case(word.as_bytes())),
        Check::Quoted => is_quoted(secret) && !is_other_name(text, start),
        Check::Random => is_random(secret) && !is_other_name(text, start),
        Check::Told => told::is_told(secret),
        Check::Listed => told::is_listed(secret),
        Check::Phrase => told::is_phrase(secret),
        Check::Codes => told::is_codes(secret),
    }
}

/// Returns true if a cookie is an identifier rather than a setting.
fn has_pair(secret: &[u8]) -> bool {
    let is_id = |value: &[u8]| value.len() >= 8 && value.iter().any(u8::is_ascii_digit) && !value.contains(&b',');
    secret.split(|byte| *byte == b';').any(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1).is_some_and(is_id))
}

/// Returns true if a value is marked as a sample, as the manuals of issuers do.
pub(crate) fn is_sample(secret: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(secret, part).is_some();
    !secret.iter().any(u8::is_ascii_whitespace) && (has(b"EXAMPLE") || has(b"xxxxxxxx") || has(b"XXXXXXXX"))
}

/// Returns true if the name around the start of a match denotes something other than a secret.
fn is_other_name(text: &[u8], start: usize) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    let near = text.get(start.saturating_sub(LONGEST_NAME)..(start + 1).min(text.len())).unwrap_or_default();
    let before = text.get(start.saturating_sub(LONGEST_NAME)..start).unwrap_or_default();
    let before = before.iter().rev().take_while(|byte| is_name(byte)).count();
    let behind = text.get(start..).unwrap_or_default().iter().take(LONGEST_NAME);
    // A match may begin with the sign before its name.
    let behind = behind.skip_while(|byte| !is_name(byte)).take_while(|byte| is_name(byte)).count() + 1;
    let name = text.get(start - before..(start + behind).min(text.len())).unwrap_or_default().to_ascii_lowercase();
    // Tokens in the addresses of badges are public.
    memchr::memmem::find(near, b".svg?").is_some()
        || OTHER_NAMES.iter().any(|other| memchr::memmem::find(&name, other.as_bytes()).is_some())
}

/// Returns the Shannon entropy in bits per character.
pub(crate) fn entropy(secret: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    for byte in secret {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let length = secret.len() as f32;
    let share = |count: &u32| *count as f32 / length;
    -counts.iter().filter(|count| **count > 0).map(|count| share(count) * share(count).log2()).sum::<f32>()
}

fn is_mixed(secret: &[u8]) -> bool {
    let digits = secret.iter().any(u8::is_ascii_digit) && secret.iter().any(u8::is_ascii_alphabetic);
    digits || is_jumbled(secret)
}

/// Returns true if the case changes more often than in the words of a name, whose capitals stand alone.
pub(crate) fn is_jumbled(secret: &[u8]) -> bool {
    let pairs = || secret.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    let changes = pairs().filter(|(one, other)| one.is_ascii_uppercase() != other.is_ascii_uppercase()).count();
    let together = pairs().any(|(one, other)| one.is_ascii_uppercase() && other.is_ascii_uppercase());
    let letters = secret.iter().all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(byte));
    letters && together && secret.len() >= 10 && changes * 3 >= secret.len()
}

fn is_placeholder(secret: &[u8]) -> bool {
    let lower = secret.to_ascii_lowercase();
    let holds = |part: &&str| memchr::memmem::find(&lower, part.as_bytes()).is_some();
    let same = secret.first().is_none_or(|first| secret.iter().all(|byte| byte == first));
    same || PLACEHOLDERS.iter().any(holds)
}

fn is_password(secret: &[u8]) -> bool {
    let is_word = |word: &&str| secret.eq_ignore_ascii_case(word.as_bytes());
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_';
    let is_name = |byte: &u8| is_capital(byte) || byte.is_ascii_digit();
    let is_constant = secret.iter().all(is_capital)
        || secret.contains(&b'_') && secret.first().is_some_and(is_capital) && secret.iter().all(is_name);
    let is_digit = |byte: &u8| byte.is_ascii_digit() || b".,_-+eE".contains(byte);
    let is_address =
        secret.strip_prefix(b"0x").is_some_and(|hex| hex.len() <= 16 && hex.iter().all(u8::is_ascii_hexdigit));
    let is_number = is_address || secret.iter().all(is_digit);
    let is_colour = secret.split_first().is_some_and(|(first, digits)| {
        *first == b'#' && matches!(digits.len(), 3 | 6 | 8) && digits.iter().all(u8::is_ascii_hexdigit)
    });
    let is_file = FILES.iter().any(|end| secret.ends_with(end.as_bytes()));
    !is_constant
        && !is_number
        && !is_colour
        && !is_reference(secret)
        && !is_file
        && !WORDS.iter().any(is_word)
        && !is_placeholder(secret)
}

/// Names of secrets. A value that contains one is a name itself: `new_password_2`.
const NAMES: &[&str] = &["password", "passwd", "secret", "token", "credential", "api_key", "apikey", "private"];

/// Returns true unless the word is a placeholder, or the word of a language or schema.
pub(crate) fn is_secret_word(secret: &[u8]) -> bool {
    is_password(secret)
}

/// Returns true if a value names where the secret is instead of being it.
fn is_reference(secret: &[u8]) -> bool {
    REFERENCES.iter().any(|start| secret.starts_with(start.as_bytes()))
}

fn is_secret(secret: &[u8]) -> bool {
    let lower = secret.to_ascii_lowercase();
    let is_name = NAMES.iter().any(|name| memchr::memmem::find(&lower, name.as_bytes()).is_some());
    let both = secret.iter().any(u8::is_ascii_uppercase) && secret.iter().any(u8::is_ascii_lowercase);
    // A member of a structure: `InvalidationList.NextMarker`.
    let is_member = secret.contains(&b'.') && secret.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'.');
    let long = secret.len() >= 20 && both && !is_member && entropy(secret) >= 4.0;
    !is_name && is_password(secret) && (is_mixed(secret) || long)
}

/// Words that stand in place of a password and name what belongs there.
const PLACE_NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "null",
    "none",
    "nil",
    "true",
    "false",
    "string",
    "str",
    "text",
    "required",
    "optional",
    "undefined",
    "number",
    "object",
    "any",
    "username",
    "user",
    "prompt",
    "secretstr",
    "secretbytes",
];

/// Words that manuals use as sample passwords.
const PLACEHELD: &[&str] =
    &["foobared", "foobar", "pass", "pw", "mypassword", "my_password", "default", "sample", "notasecret"];

fn is_given(secret: &[u8]) -> bool {
    // GraphQL and TypeScript write `String!` and `string?`.
    let word = secret.strip_suffix(b"!").or(secret.strip_suffix(b"?")).unwrap_or(secret);
    let is_name = PLACE_NAMES.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    let is_between_percents = secret.len() > 1 && secret.starts_with(b"%") && secret.ends_with(b"%");
    let is_variable = is_between_percents
        || secret.starts_with(b"#{")
        || secret.first().is_some_and(|first| b"${[(*".contains(first));
    !is_name && !is_variable && !is_placeholder(secret)
}

/// Words that forms and manuals put behind the name of a password.
const LABELS: &[&str] = &[
    "hidden",
    "visible",
    "current",
    "confirm",
    "invalid",
    "missing",
    "incorrect",
    "expired",
    "updated",
    "changed",
    "request",
    "response",
    "account",
    "username",
    "optional",
    "unknown",
    "prompt",
    "encrypted",
    "cleartext",
    "plaintext",
    "protected",
    "supported",
    "unsupported",
    "kennwort",
    "passcode",
    "forgot",
    "reset",
    "login",
    "input",
    "field",
    "different",
];

fn is_quoted(secret: &[u8]) -> bool {
    if is_secret(secret) {
        return true;
    }
    let lower = secret.to_ascii_lowercase();
    // `password2024!` is a password, `password_hash` is a name.
    let rest = ["password", "passwd", "secret"].iter().find_map(|name| lower.strip_prefix(name.as_bytes()));
    if rest.is_some_and(|rest| rest.len() >= 4 && is_suffix(rest)) {
        return !is_placeholder(secret);
    }
    let is_name = NAMES.iter().chain(LABELS).any(|name| memchr::memmem::find(&lower, name.as_bytes()).is_some());
    // Labels begin with a capital; paths, member names and formats contain punctuation.
    let is_plain = secret.iter().all(u8::is_ascii_lowercase) && secret.len() >= 8;
    // A name of that length would have a separator between its words.
    if is_plain && secret.len() >= 16 {
        return true;
    }
    let is_odd = secret.iter().any(|byte| b"!@#$%^&*+=?~".contains(byte)) && secret.iter().any(u8::is_ascii_alphabetic);
    !is_name && is_password(secret) && (is_plain || is_odd && is_given(secret))
}

/// Returns true for a typical suffix that turns a word into a password: digits and signs, with at most one letter.
fn is_suffix(rest: &[u8]) -> bool {
    let letters = rest.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let is_separator = |byte: &u8| b"_-./: ".contains(byte);
    letters <= 1 && rest.iter().any(u8::is_ascii_digit) && !rest.iter().any(is_separator)
}

/// Minimum length of a value that looks random.
const RANDOM: usize = 16;
/// Minimum number of hex digits that are accepted as a key after a key name: 128 bits.
const HEX_KEY: usize = 32;

fn is_random(secret: &[u8]) -> bool {
    let digits = secret.iter().filter(|byte| byte.is_ascii_digit()).count();
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = secret.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    let changes = pairs.filter(|(one, other)| kind(one) != kind(other)).count();
    // In names, the digits stand together: `PublicKeyX509Der`.
    let groups = secret.split(u8::is_ascii_digit).filter(|part| !part.is_empty()).count();
    let enough = secret.len() >= RANDOM && digits < secret.len() && changes * 4 >= secret.len();
    let is_hex = secret.len() >= HEX_KEY && secret.iter().all(u8::is_ascii_hexdigit) && digits > 0;
    // In names, each word has one capital; here every second letter changes its case.
    let is_odd = secret.len() >= RANDOM && changes * 2 >= secret.len() && is_jumbled(secret);
    (is_hex || is_odd || is_dense(secret) || enough && groups >= 4) && entropy(secret) >= 3.0 && is_secret(secret)
}

/// Returns true if capitals, small letters and digits alternate as often as in base64 of random bytes. Names have
/// separators between their words, or capitals that stand alone.
fn is_dense(secret: &[u8]) -> bool {
    let body = secret.trim_ascii_end().strip_suffix(b"==").or(secret.strip_suffix(b"=")).unwrap_or(secret);
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = || body.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    let changes = pairs().filter(|(one, other)| kind(one) != kind(other)).count();
    let together = pairs().filter(|(one, other)| one.is_ascii_uppercase() && other.is_ascii_uppercase()).count();
    let plain = body.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    plain && body.len() >= 24 && together >= 2 && changes * 3 >= body.len() && entropy(body) >= 4.0
}

/// Returns true if `tail` may be the rest of a credential of which only the beginning is known: a long stretch of
/// letters and digits.
pub(crate) fn is_tail(tail: &[u8]) -> bool {
    let stretch = tail.split(|byte| !byte.is_ascii_alphanumeric()).max_by_key(|part| part.len()).unwrap_or_default();
    let digits = stretch.iter().filter(|byte| byte.is_ascii_digit()).count();
    let groups = stretch.split(u8::is_ascii_digit).filter(|part| !part.is_empty()).count();
    stretch.len() >= RANDOM && digits < stretch.len() && groups >= 3 && entropy(stretch) >= 3.0 && is_secret(tail)
}

fn is_basic(secret: &[u8]) -> bool {
    let decoded = STANDARD.decode(secret).or_else(|_| STANDARD_NO_PAD.decode(secret));
    // `echo` without `-n` leaves a line end in the pair.
    let is_text = |bytes: &[u8]| bytes.trim_ascii_end().iter().all(|byte| !byte.is_ascii_control());
    decoded.is_ok_and(|pair| pair.contains(&b':') && is_text(&pair) && std::str::from_utf8(&pair).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_told_from_what_stands_for_them() {
        for secret in ["hunter2", "S3cure!pass", "correct-horse-battery"] {
            assert!(is_password(secret.as_bytes()), "{secret}");
        }
        for word in ["password", "String", "12345", "OTHER_TOKEN", "xxxxxxxx", "aaaaaa", "${DB_PASSWORD}", "your_token"]
        {
            assert!(!is_password(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn entropy_is_counted_in_bits_per_character() {
        assert!(entropy(b"aaaaaaaa") < 0.01);
        assert!((entropy(b"abcdefgh") - 3.0).abs() < 0.01);
    }

    #[test]
    fn basic_credentials_have_a_colon_in_them() {
        assert!(is_basic(STANDARD.encode("ann:hunter2").as_bytes()));
        assert!(!is_basic(STANDARD.encode("ann, hunter2").as_bytes()));
        assert!(!is_basic(b"authentication"));
    }
}
