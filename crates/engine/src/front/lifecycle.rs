//! The life of an old-era session: Created, Initializing, Operational, Closed (N-7).

use crate::fault::{Fault, FaultKind};
use signalbox_wire::method;

/// Where a session is in its life.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lifecycle {
    /// Waits for `initialize`.
    Created,
    /// Has answered `initialize`, waits for `notifications/initialized`.
    Initializing,
    /// Serves everything.
    Operational,
    /// Is over.
    Closed,
}

impl Lifecycle {
    /// Decides whether a request of this method is admitted (N-8 to N-10): `ping` until the session is closed,
    /// `initialize` once, the rest when operational.
    ///
    /// # Errors
    /// The fault to answer with.
    pub fn admit(self, name: &str) -> Result<(), Fault> {
        match self {
            Self::Closed => Err(Fault::new(FaultKind::SessionClosed, "the session has ended")),
            _ if name == method::PING => Ok(()),
            Self::Created if name == method::INITIALIZE => Ok(()),
            Self::Created | Self::Initializing if name != method::INITIALIZE => {
                Err(Fault::new(FaultKind::NotInitialized, "Server not initialized").with_str("method", name))
            }
            Self::Initializing | Self::Operational if name == method::INITIALIZE => {
                Err(Fault::new(FaultKind::InvalidRequest, "the session is already initialized"))
            }
            _ => Ok(()),
        }
    }

    /// The state as people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Initializing => "initializing",
            Self::Operational => "operational",
            Self::Closed => "closed",
        }
    }
}
