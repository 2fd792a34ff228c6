//! Set of classes that a search looks for.

use super::PrivacyClass;

/// Set of classes of private data.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PrivacyClasses(u8);

impl PrivacyClasses {
    /// Set without a class.
    pub const NONE: Self = Self(0);
    /// Set of all classes.
    pub const ALL: Self = Self::NONE
        .with(PrivacyClass::Credential)
        .with(PrivacyClass::Email)
        .with(PrivacyClass::Phone)
        .with(PrivacyClass::Iban)
        .with(PrivacyClass::Card);

    /// Returns the set with one class more.
    #[must_use]
    pub const fn with(self, class: PrivacyClass) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Returns true if the class belongs to the set.
    #[must_use]
    pub const fn contains(self, class: PrivacyClass) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// Returns true if no class belongs to the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<PrivacyClass> for PrivacyClasses {
    fn from_iter<T: IntoIterator<Item = PrivacyClass>>(classes: T) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}
