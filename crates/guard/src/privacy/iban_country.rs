//! Countries with international bank account numbers, and the formats of their account numbers.
//!
//! The table follows the IBAN registry of SWIFT (release 99). A format lists runs of characters: how many, and `n` for
//! digits, `a` for letters or `c` for both. The country and the check digits before the account are not listed.

/// Maximum length of an account number with country and check digits.
pub(super) const LONGEST: usize = 34;

/// Formats of accounts, each after the code of its country (ISO 3166-1).
const FORMATS: &[(&str, &str)] = &[
    ("AD", "8n12c"),
    ("AE", "19n"),
    ("AL", "8n16c"),
    ("AT", "16n"),
    ("AZ", "4a20c"),
    ("BA", "16n"),
    ("BE", "12n"),
    ("BG", "4a6n8c"),
    ("BH", "4a14c"),
    ("BI", "23n"),
    ("BR", "23n1a1c"),
    ("BY", "4c4n16c"),
    ("CH", "5n12c"),
    ("CR", "18n"),
    ("CY", "8n16c"),
    ("CZ", "20n"),
    ("DE", "18n"),
    ("DJ", "23n"),
    ("DK", "14n"),
    ("DO", "4c20n"),
    ("EE", "16n"),
    ("EG", "25n"),
    ("ES", "20n"),
    ("FI", "14n"),
    ("FK", "2a12n"),
    ("FO", "14n"),
    ("FR", "10n11c2n"),
    ("GB", "4a14n"),
    ("GE", "2a16n"),
    ("GI", "4a15c"),
    ("GL", "14n"),
    ("GR", "7n16c"),
    ("GT", "24c"),
    ("HN", "4a20n"),
    ("HR", "17n"),
    ("HU", "24n"),
    ("IE", "4a14n"),
    ("IL", "19n"),
    ("IQ", "4a15n"),
    ("IS", "22n"),
    ("IT", "1a10n12c"),
    ("JO", "4a4n18c"),
    ("KW", "4a22c"),
    ("KZ", "3n13c"),
    ("LB", "4n20c"),
    ("LC", "4a24c"),
    ("LI", "5n12c"),
    ("LT", "16n"),
    ("LU", "3n13c"),
    ("LV", "4a13c"),
    ("LY", "21n"),
    ("MC", "10n11c2n"),
    ("MD", "20c"),
    ("ME", "18n"),
    ("MK", "3n10c2n"),
    ("MN", "16n"),
    ("MR", "23n"),
    ("MT", "4a5n18c"),
    ("MU", "4a19n3a"),
    ("NI", "4a20n"),
    ("NL", "4a10n"),
    ("NO", "11n"),
    ("OM", "3n16c"),
    ("PK", "4a16c"),
    ("PL", "24n"),
    ("PS", "4a21c"),
    ("PT", "21n"),
    ("QA", "4a21c"),
    ("RO", "4a16c"),
    ("RS", "18n"),
    ("RU", "14n15c"),
    ("SA", "2n18c"),
    ("SC", "4a20n3a"),
    ("SD", "14n"),
    ("SE", "20n"),
    ("SI", "15n"),
    ("SK", "20n"),
    ("SM", "1a10n12c"),
    ("SO", "19n"),
    ("ST", "21n"),
    ("SV", "4a20n"),
    ("TL", "19n"),
    ("TN", "20n"),
    ("TR", "6n16c"),
    ("UA", "6n19c"),
    ("VA", "18n"),
    ("VG", "4a16n"),
    ("XK", "16n"),
    ("YE", "4a4n18c"),
];

/// Returns the format of a country, whose code is in either case.
pub(super) fn format(country: &[u8]) -> Option<&'static str> {
    FORMATS.iter().find(|(code, _)| country.eq_ignore_ascii_case(code.as_bytes())).map(|(_, format)| *format)
}

/// Returns the length of a number of this format, with country and check digits.
pub(super) fn length(format: &str) -> usize {
    4 + runs(format).map(|(count, _)| count).sum::<usize>()
}

/// Returns true if the characters of an account are those of the format.
pub(super) fn fits(format: &str, account: &[u8]) -> bool {
    let mut rest = account;
    for (count, kind) in runs(format) {
        let Some((run, behind)) = rest.split_at_checked(count) else { return false };
        let is_of_kind = |byte: &u8| match kind {
            'n' => byte.is_ascii_digit(),
            'a' => byte.is_ascii_alphabetic(),
            _ => byte.is_ascii_alphanumeric(),
        };
        if !run.iter().all(is_of_kind) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

/// Returns the runs of a format.
fn runs(format: &str) -> impl Iterator<Item = (usize, char)> {
    format.split_inclusive(|character: char| character.is_ascii_alphabetic()).filter_map(|run| {
        let kind = run.chars().next_back()?;
        Some((run.trim_end_matches(kind).parse().ok()?, kind))
    })
}
