//! Words that announce a telephone number.

use super::context_word;
use super::segment::Segment;

/// Words before a telephone number.
const WORDS: &[&str] = &[
    "cellphone",
    "cellulare",
    "celular",
    "fax",
    "faxnummer",
    "fon",
    "gsm",
    "handynummer",
    "mobiel",
    "mobil",
    "mobile",
    "mobilnummer",
    "mobiltelefon",
    "movil",
    "msisdn",
    "móvil",
    "phone",
    "phones",
    "rufnummer",
    "tel",
    "telefax",
    "telefon",
    "telefone",
    "telefonnr",
    "telefonnummer",
    "telefono",
    "telefoon",
    "telephone",
    "teléfono",
    "tlf",
    "tél",
    "téléphone",
    "telèfon",
    "whatsapp",
    "моб",
    "мобильный",
    "тел",
    "телефон",
];
/// Ends of such words in scripts without spaces.
const ENDS: &[&str] = &["电话", "電話", "手机", "手機", "携帯", "전화"];
/// Words that announce a telephone number or something else.
const AMBIGUOUS_WORDS: &[&str] = &["call", "calls", "cell", "dial", "handy", "hotline", "ph", "portable", "sms"];
/// Words after which a number is something else.
const OTHER_WORDS: &[&str] = &[
    "api",
    "build",
    "bytes",
    "count",
    "date",
    "error",
    "guid",
    "hash",
    "id",
    "ids",
    "index",
    "model",
    "ms",
    "offset",
    "port",
    "size",
    "time",
    "timestamp",
    "ts",
    "uid",
    "uuid",
    "version",
];

/// Meaning of a number by the words before it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Announcement {
    /// A telephone number, even without separators.
    Phone,
    /// A telephone number or something else, so that the number has to look like one.
    Ambiguous,
    /// No telephone number, whatever it looks like.
    Other,
}

impl Announcement {
    /// Returns the meaning of the number at an offset by the nearest word that has one.
    pub(super) fn before(segment: Segment<'_>, start: usize) -> Option<Self> {
        context_word::nearest(segment, start, |word| match word {
            _ if WORDS.contains(&word) || ENDS.iter().any(|end| word.ends_with(end)) => Some(Self::Phone),
            _ if AMBIGUOUS_WORDS.contains(&word) => Some(Self::Ambiguous),
            _ if OTHER_WORDS.contains(&word) => Some(Self::Other),
            _ => None,
        })
    }
}
