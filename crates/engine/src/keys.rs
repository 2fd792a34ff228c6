//! The numbers by which the parts of the engine speak of each other.

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
    /// One request of a client from arrival to outcome, unique within its session.
    ExchangeId
);
