//! Checks of secrets that people tell each other: in sentences, tables and lists.

use crate::checks;

/// Length of a password that is told, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 6..=64;
/// Signs that stand in passwords more often than in other words.
const SIGNS: &[u8] = b"!#$%&*+?@^~";
/// Signs of paths, code and markup.
const OTHER_SIGNS: &[u8] = b"/\\<>()[]{}|\"`=";
/// Parts of the names of methods, formats and standards, whose names have digits.
const METHODS: &[&str] =
    &["sha1", "sha2", "sha3", "sha5", "md5", "base64", "base32", "pbkdf2", "argon2", "oauth2", "x509"];
/// Beginnings of such names.
const TECHNICAL: &[&str] = &[
    "sha",
    "utf",
    "aes",
    "rsa",
    "bcrypt",
    "scrypt",
    "rfc",
    "http",
    "ascii",
    "ntlm",
    "ipv",
    "iso",
    "unicode",
    "bytes",
    "chars",
    "characters",
    "digits",
    "bits",
    "pkcs",
    "kerberos",
    "ldap",
    "log4j",
    "win32",
    "python",
    "com",
    "org",
];
/// Words that are frequent in sentences and in no list of words for passphrases.
const COMMON: &[&str] = &[
    "the",
    "and",
    "for",
    "are",
    "with",
    "was",
    "from",
    "not",
    "but",
    "has",
    "had",
    "they",
    "were",
    "been",
    "which",
    "their",
    "would",
    "into",
    "its",
    "our",
    "your",
    "must",
    "should",
    "than",
    "then",
    "these",
    "those",
    "does",
    "did",
    "his",
    "her",
    "him",
    "she",
    "least",
    "characters",
    "letters",
    "string",
    "could",
    "where",
    "while",
    "also",
    "being",
    "such",
    "same",
    "using",
    "value",
    "values",
    "password",
    "please",
    "und",
    "der",
    "die",
    "das",
    "les",
    "des",
];
/// Minimum number of words of a passphrase.
const WORDS: usize = 4;
/// Minimum number of words of a seed phrase.
const SEED: usize = 12;
/// Minimum number of codes of a list.
const CODES: usize = 4;

/// Returns true if a word of a sentence is a password rather than a name or the word of a language.
pub(crate) fn is_told(secret: &[u8]) -> bool {
    let secret = trim(secret);
    let lower = secret.to_ascii_lowercase();
    let has = |part: &&str| memchr::memmem::find(&lower, part.as_bytes()).is_some();
    let mut parts = lower.split(|byte| !byte.is_ascii_alphanumeric());
    let is_technical = METHODS.iter().any(has) || parts.any(|part| TECHNICAL.iter().any(|word| is_version(part, word)));
    let is_other = secret.iter().any(|byte| OTHER_SIGNS.contains(byte) || !byte.is_ascii_graphic());
    if !LENGTHS.contains(&secret.len())
        || is_other
        || is_technical
        || lower.ends_with(b"password")
        || !checks::is_secret_word(secret)
    {
        return false;
    }
    let count = |is: fn(&u8) -> bool| secret.iter().filter(|byte| is(byte)).count();
    let (digits, lowers) = (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase));
    let uppers = count(u8::is_ascii_uppercase);
    let body = secret.strip_suffix(b"?").or(secret.strip_suffix(b"!")).unwrap_or(secret);
    let has_sign = body.iter().any(|byte| SIGNS.contains(byte)) || body.len() < secret.len() && digits > 0;
    let is_odd = digits >= 2 || has_sign && digits > 0 || uppers > 0 && digits > 0 && secret.len() >= 8;
    lowers >= 2 && !is_name(secret, has_sign) && (is_odd || checks::is_jumbled(secret))
}

/// Returns true if a part of a word is this name, with or without a number.
fn is_version(part: &[u8], name: &str) -> bool {
    part.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
}

/// Returns true for file names, addresses, lengths like `12-character` and rows of words and numbers.
fn is_name(secret: &[u8], has_sign: bool) -> bool {
    let end = secret.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let has_end = end.len() < secret.len() && end.len() <= 5 && end.first().is_some_and(u8::is_ascii_lowercase);
    let is_address = has_end && secret.contains(&b'@');
    let digits = secret.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_length = digits > 0 && secret.get(digits) == Some(&b'-');
    let parts = || secret.split(|byte| b"-_.:".contains(byte));
    let is_plain = |part: &[u8]| part.iter().all(u8::is_ascii_digit) || part.iter().all(u8::is_ascii_alphabetic);
    let is_row = parts().count() > 1 && parts().all(is_plain);
    is_address || !has_sign && (has_end || is_length || is_row)
}

/// Leaves out what ends a sentence.
fn trim(secret: &[u8]) -> &[u8] {
    let end = secret.iter().rposition(|byte| !b".,;:'".contains(byte)).map_or(0, |at| at + 1);
    secret.get(..end).unwrap_or_default()
}

/// Returns true if a row of cells or words has a password.
pub(crate) fn is_listed(rows: &[u8]) -> bool {
    rows.split(|byte| byte.is_ascii_whitespace() || b"|,;\"\\".contains(byte)).any(is_told)
}

/// Returns true if these are words as of a passphrase, and not of a sentence. A sentence may follow a long one.
pub(crate) fn is_phrase(secret: &[u8]) -> bool {
    let is_common = |word: &&[u8]| word.len() < 3 || COMMON.iter().any(|common| common.as_bytes() == *word);
    let all = || secret.split(|byte| !byte.is_ascii_lowercase()).filter(|word| word.len() > 1);
    let mut words: Vec<&[u8]> = all().take_while(|word| !is_common(word)).collect();
    let (count, is_cut) = (words.len(), all().any(|word| is_common(&word)));
    words.sort_unstable();
    words.dedup();
    count >= if is_cut { SEED } else { WORDS } && words.len() + 1 >= count
}

/// Returns true if these are codes in a list: most have digits, and all differ.
pub(crate) fn is_codes(secret: &[u8]) -> bool {
    let parts = secret.split(|byte| !byte.is_ascii_alphanumeric());
    let mut codes: Vec<&[u8]> = parts.filter(|part| part.len() >= 4).collect();
    let count = codes.len();
    let digits = codes.iter().filter(|code| code.iter().any(u8::is_ascii_digit)).count();
    codes.sort_unstable();
    codes.dedup();
    count >= CODES && codes.len() + 1 >= count && digits * 4 >= count * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_passwords_are_known_from_names() {
        for secret in ["Ottermarble546!", "copper8595", "Blizzard.cobalt12?", "Pickle-harbor53$", "gWHm8bWClN"] {
            assert!(is_told(secret.as_bytes()), "{secret}");
        }
        for word in [
            "SHA256-hashed",
            "12-character",
            "auth2020.json",
            "ann24@mail.test",
            "required!",
            "RFC-7617",
            "user1",
            "a/b12c",
        ] {
            assert!(!is_told(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn phrases_and_codes_are_known_from_sentences() {
        assert!(is_phrase(b"unfold obtain salmon wolf"));
        assert!(!is_phrase(b"must have the same length"));
        assert!(is_codes(b"8a4c0-48816\ne752e-4fb63"));
        assert!(!is_codes(b"never share these codes with anyone"));
        assert!(is_listed(b"| Nagios | admin | Harbor.lantern4924! |"));
        assert!(!is_listed(b"| name | string | the password |"));
    }
}
