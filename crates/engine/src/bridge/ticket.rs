//! The ticket that a client of the new era carries from one round of a call to the next. The client can neither read
//! nor change it.

use crate::caller::Principal;
use signalbox_wire::hex::{push_hex, unhex};

/// Prefix of every ticket, so that a person can recognise one.
const PREFIX: &str = "sbx1.";
/// Maximum length of a ticket in bytes; longer ones are neither issued nor read. The caller's name takes twice its
/// length in it.
const MAX_TICKET: usize = 16 << 10;

/// Purpose of a ticket.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// A parked call waits for the client's answers.
    Parked {
        /// Number of the parked call.
        park: u128,
        /// Round to be answered.
        round: u32,
    },
    /// The backend refused the call until the user visits a URL. The call then runs as if it were new, once.
    Again {
        /// Number of the refusal.
        number: u128,
    },
}

/// Contents of a ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Purpose of the ticket.
    pub claim: Claim,
    /// Principal that may use the ticket.
    pub principal: Principal,
    /// Expiry, in milliseconds since the process began.
    pub expires: u64,
    /// Digest of the request it belongs to.
    pub digest: [u8; 32],
}

/// Encrypts data that leaves the process and must come back unchanged. The key is generated at startup and dies with
/// the process.
pub trait Sealer: Send + Sync {
    /// Seals a text; `None` if the system gives no randomness.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>>;
    /// Opens a text sealed by this process; `None` for anything else.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;
    /// Returns a collision-resistant digest.
    fn digest(&self, text: &[u8]) -> [u8; 32];
}

impl Ticket {
    /// Seals the ticket as `requestState`; `None` if it cannot be sealed, or would be too long to be opened again.
    #[must_use]
    pub fn seal(&self, sealer: &dyn Sealer) -> Option<String> {
        let mut plain = Vec::with_capacity(96);
        let (kind, park, round) = match self.claim {
            Claim::Parked { park, round } => (0_u8, park, round),
            Claim::Again { number } => (1, number, 0),
        };
        plain.push(kind);
        plain.extend_from_slice(&park.to_be_bytes());
        plain.extend_from_slice(&round.to_be_bytes());
        plain.extend_from_slice(&self.expires.to_be_bytes());
        plain.extend_from_slice(&self.digest);
        plain.extend_from_slice(self.principal.as_str().as_bytes());
        let sealed = sealer.seal(&plain)?;
        let mut text = String::with_capacity(PREFIX.len() + sealed.len() * 2);
        text.push_str(PREFIX);
        push_hex(&mut text, &sealed);
        (text.len() <= MAX_TICKET).then_some(text)
    }

    /// Opens a `requestState`; `None` if it was not sealed by this process.
    #[must_use]
    pub fn open(text: &str, sealer: &dyn Sealer) -> Option<Self> {
        let hex = text.strip_prefix(PREFIX).filter(|_| text.len() <= MAX_TICKET)?;
        let plain = sealer.open(&unhex(hex)?)?;
        let (head, name) = plain.split_at_checked(1 + 16 + 4 + 8 + 32)?;
        let (kind, rest) = head.split_first()?;
        let (park, rest) = rest.split_first_chunk::<16>()?;
        let (round, rest) = rest.split_first_chunk::<4>()?;
        let (expires, rest) = rest.split_first_chunk::<8>()?;
        let number = u128::from_be_bytes(*park);
        let claim = match kind {
            0 => Claim::Parked { park: number, round: u32::from_be_bytes(*round) },
            _ => Claim::Again { number },
        };
        Some(Self {
            claim,
            principal: Principal::named(std::str::from_utf8(name).ok()?),
            expires: u64::from_be_bytes(*expires),
            digest: rest.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a sum, which is enough to see a change.
    struct Sum;

    impl Sealer for Sum {
        fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
            let sum = plain.iter().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
            Some([plain, &[sum]].concat())
        }

        fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
            let (_, plain) = sealed.split_last()?;
            (self.seal(plain)? == sealed).then(|| plain.to_vec())
        }

        fn digest(&self, _: &[u8]) -> [u8; 32] {
            [0; 32]
        }
    }

    #[test]
    fn a_ticket_comes_back_as_it_left_and_in_no_other_way() {
        for claim in [Claim::Parked { park: 5 << 100, round: 3 }, Claim::Again { number: 7 }] {
            let ticket = Ticket { claim, principal: Principal::local("me"), expires: 77, digest: [9; 32] };
            let text = ticket.seal(&Sum).unwrap();
            assert_eq!(Ticket::open(&text, &Sum), Some(ticket));
            for at in 0..text.len() {
                let mut other = text.clone().into_bytes();
                other[at] = if other[at] == b'0' { b'1' } else { b'0' };
                assert_eq!(Ticket::open(std::str::from_utf8(&other).unwrap(), &Sum), None, "byte {at}");
            }
        }
        let endless = Principal::named(&"n".repeat(MAX_TICKET));
        let ticket = Ticket { claim: Claim::Again { number: 7 }, principal: endless, expires: 77, digest: [9; 32] };
        assert_eq!(ticket.seal(&Sum), None, "what could not be opened again is not given out");
        for text in ["", "sbx1.", "sbx1.0", "sbx1.zz", "x", &format!("sbx1.{}", "0".repeat(4096))] {
            assert_eq!(Ticket::open(text, &Sum), None);
        }
    }
}
