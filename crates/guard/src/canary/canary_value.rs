//! Value that is laid out to be found.

use super::{CanaryId, CanaryKey, CanaryKind, base32_payload, name_payload};

/// Maximum number of letters and digits of a label that a value shows.
const MAX_LABEL: usize = 16;
/// Word that stands for an empty label.
const DEFAULT_LABEL: &str = "internal";

/// Value that is laid out to be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Canary {
    kind: CanaryKind,
    id: CanaryId,
    value: String,
}

impl Canary {
    /// Makes a canary. The letters and digits of the label are shown in the value, except for a name.
    #[must_use]
    pub fn new(kind: CanaryKind, random: [u8; 16], label: &str, key: &CanaryKey) -> Self {
        let layout = if kind == CanaryKind::Name { name_payload::LAYOUT } else { base32_payload::LAYOUT };
        let id = CanaryId(u128::from_le_bytes(random) as u64 >> (u64::BITS - layout.id_bits));
        let letters = label.chars().filter(char::is_ascii_alphanumeric).take(MAX_LABEL);
        let mut label: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        if label.is_empty() {
            label.push_str(DEFAULT_LABEL);
        }
        let value = match kind {
            CanaryKind::ApiKey => format!("key_{label}_{}", base32_payload::write(key, id)),
            CanaryKind::Email => format!("{label}.{}@mail.example.net", base32_payload::write(key, id)),
            CanaryKind::Url => format!("https://{label}.example.net/share/{}", base32_payload::write(key, id)),
            CanaryKind::Name => name_payload::write(key, id),
        };
        Self { kind, id, value }
    }

    /// Returns the shape of the value.
    #[must_use]
    pub const fn kind(&self) -> CanaryKind {
        self.kind
    }

    /// Returns the id that is found in a text.
    #[must_use]
    pub const fn id(&self) -> CanaryId {
        self.id
    }

    /// Returns the value to lay out.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}
