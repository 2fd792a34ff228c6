//! The numbers by which the parts of the engine speak of each other.

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
    /// One front session: an old-era session, a stdio pipe, or a single stateless request.
    SessionKey
);
key!(
    /// One way back to the client: the answer to a POST, a GET stream, or the stdio pipe.
    StreamId
);
key!(
    /// One connection to a backend: a child process, or an HTTP backend session.
    PeerId
);
key!(
    /// One request of a client from arrival to outcome, unique within its process.
    ExchangeId
);

impl SessionKey {
    /// Stands for the gateway itself where something belongs to no session. No session has this number.
    pub const GATEWAY: Self = Self(0);
}

/// Counts what has one number in the whole process, live and on its tape.
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
    /// The number of a new exchange.
    pub fn exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    /// The number of a new message.
    pub fn message(&self) -> u64 {
        self.messages.fetch_add(1, Ordering::Relaxed)
    }
}

/// A map by numbers that the gateway counts itself. No client can choose them, so spreading them is enough.
pub type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// A map by texts that others may choose. Its hash is quick, and seeded anew in every process, so that nobody can choose
/// texts that meet in one place.
pub type TextMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Spreads counted numbers over a table.
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
        // The upper bits are the well mixed ones, and the table takes the lower ones for the place.
        self.0.rotate_left(32)
    }
}
