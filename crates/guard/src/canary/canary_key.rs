//! Key that canaries are made and recognised with.

use super::CanaryId;
use aws_lc_rs::hmac::{self, HMAC_SHA256};

/// Number of bits of HMAC in every canary.
const HMAC_BITS: u32 = 40;

/// Key that canaries are made and recognised with.
pub struct CanaryKey {
    mac: hmac::Key,
    /// Secret odd factor of the quick check, which spares most candidates the HMAC.
    factor: u64,
}

/// Layout of the checkable part: the alphabet that it is written in decides how long it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct PayloadLayout {
    /// Number that keeps the MACs of layouts apart.
    pub(super) domain: u8,
    pub(super) id_bits: u32,
    /// Bits of the quick check.
    pub(super) quick_bits: u32,
}

impl CanaryKey {
    /// Creates the key from random bytes, which have to be kept: canaries are not recognised with another key.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let mac = hmac::Key::new(HMAC_SHA256, &bytes);
        let factor = first_bits(&hmac::sign(&mac, b"canary quick check")) | 1;
        Self { mac, factor }
    }

    /// Returns the checkable part for an id.
    pub(super) fn payload(&self, layout: PayloadLayout, id: CanaryId) -> u128 {
        let head = u128::from(id.0) << layout.quick_bits | u128::from(self.quick_check(layout, id));
        head << HMAC_BITS | u128::from(self.mac(layout, id))
    }

    /// Returns the id of a checkable part, if it is genuine.
    #[inline]
    pub(super) fn open(&self, layout: PayloadLayout, payload: u128) -> Option<CanaryId> {
        let id = CanaryId((payload >> (layout.quick_bits + HMAC_BITS)) as u64);
        let quick = (payload >> HMAC_BITS) as u64 & ((1 << layout.quick_bits) - 1);
        let mac = payload as u64 & ((1 << HMAC_BITS) - 1);
        (quick == self.quick_check(layout, id) && mac == self.mac(layout, id)).then_some(id)
    }

    fn quick_check(&self, layout: PayloadLayout, id: CanaryId) -> u64 {
        let product = (id.0 + 1).wrapping_mul(self.factor);
        (product ^ product << 23) >> (u64::BITS - layout.quick_bits)
    }

    fn mac(&self, layout: PayloadLayout, id: CanaryId) -> u64 {
        let mut message = b"canary ".to_vec();
        message.push(layout.domain);
        message.extend_from_slice(&id.0.to_be_bytes());
        first_bits(&hmac::sign(&self.mac, &message)) >> (u64::BITS - HMAC_BITS)
    }
}

impl PayloadLayout {
    /// Returns the length of the checkable part in bits.
    pub(super) const fn bits(self) -> u32 {
        self.id_bits + self.quick_bits + HMAC_BITS
    }
}

impl std::fmt::Debug for CanaryKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CanaryKey(…)")
    }
}

fn first_bits(tag: &hmac::Tag) -> u64 {
    tag.as_ref().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}
