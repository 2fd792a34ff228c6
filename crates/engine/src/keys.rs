//! Numbers that identify sessions, streams, connections and exchanges.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

key!(
    /// Key of a front session: an old-era session, a stdio pipe, or a single stateless request.
    SessionKey
);
key!(
    /// Key of a stream to the client: the answer to a POST, a GET stream, or the stdio pipe.
    StreamId
);
key!(
    /// Key of a connection to a backend: a child process, or an HTTP backend session.
    PeerId
);
key!(
    /// Key of a client's request from arrival to outcome, unique within its process.
    ExchangeId
);

impl SessionKey {
    /// Key of the gateway itself. No session has this number.
    pub const GATEWAY: Self = Self(0);
}

/// Counters of numbers that are unique in the process and on its tape.
#[derive(Debug)]
pub struct Numbers {
    exchanges: AtomicU64,
    messages: AtomicU64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { exchanges: AtomicU64::new(1), messages: AtomicU64::new(1) }
    }
}

impl Numbers {
    /// Returns the number of a new exchange.
    pub fn exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of a new message.
    pub fn message(&self) -> u64 {
        self.messages.fetch_add(1, Ordering::Relaxed)
    }
}

/// Map keyed by numbers that the gateway assigns. Clients cannot choose them, so a cheap hash is enough.
pub type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Map keyed by texts from outside. Its hash is fast, and seeded per process, so that an attacker cannot choose texts
/// that collide.
pub type TextMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Hasher that spreads consecutive numbers.
#[derive(Copy, Clone, Default, Debug)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The upper bits are mixed best, and the table uses the lower ones.
        self.0.rotate_left(32)
    }
}
