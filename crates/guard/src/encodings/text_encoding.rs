/// Encoding of a text in characters that look like another text.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextEncoding {
    /// Base64 in the alphabet of RFC 4648, or in that for URLs.
    Base64,
    /// Base32 of RFC 4648, in capitals.
    Base32,
    /// Two hexadecimal digits for each byte.
    Hex,
    /// Numbers for bytes, in a row with separators.
    Numbers,
    /// Escapes of URLs and forms.
    Percent,
    /// Escapes of JSON, HTML and programming languages.
    Escapes,
    /// Characters or short groups of them with the same separators in between.
    Spaced,
    /// Characters from the last to the first.
    Reversed,
    /// Pieces in several strings of one message.
    Split,
}

impl TextEncoding {
    /// Returns the word for the encoding in records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Base32 => "base32",
            Self::Hex => "hex",
            Self::Numbers => "numbers",
            Self::Percent => "percent",
            Self::Escapes => "escapes",
            Self::Spaced => "spaced",
            Self::Reversed => "reversed",
            Self::Split => "split",
        }
    }
}
