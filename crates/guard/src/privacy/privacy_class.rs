//! Classes of private data.

/// Class of private data.
///
/// The first class here names a span of findings that overlap.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyClass {
    /// Key, token or password.
    Credential,
    /// E-mail address outside the domains reserved for examples.
    Email,
    /// International or national telephone number.
    Phone,
    /// International bank account number (ISO 13616).
    Iban,
    /// Number of a payment card (ISO/IEC 7812).
    Card,
}

impl PrivacyClass {
    /// All classes, in order.
    pub const ALL: [Self; 5] = [Self::Credential, Self::Email, Self::Phone, Self::Iban, Self::Card];

    /// Returns the word for the class in settings, records and placeholders.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::Card => "card",
        }
    }
}
