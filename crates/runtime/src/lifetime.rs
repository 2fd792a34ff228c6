//! When the process of a backend runs.

use std::time::Duration;

/// What sets its process going for the first time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Start {
    /// The gateway's own start.
    #[default]
    Eager,
    /// The first call. Where its lists are not known, it is started once before to learn them.
    FirstUse,
}

/// From when to when its process runs. A backend without a process of ours is not concerned.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lifetime {
    /// What sets it going.
    pub start: Start,
    /// How long a process may be unused before it is stopped; none where it stays.
    pub idle_stop: Option<Duration>,
}
