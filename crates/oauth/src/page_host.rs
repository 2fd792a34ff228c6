//! The listener that serves the pages of a sign-in. A person who completes a sign-in lends an account to its holder, so
//! a holder that proves who it is needs a page on which a browser can prove the same.

use crate::oauth_credentials::EVERYBODY;

/// The listener on which a browser opens the pages of one sign-in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A port on loopback that serves these pages alone. A browser can prove nothing there.
    Loopback,
    /// The gateway's own listener.
    Listener,
}

/// The process that serves the pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageHost {
    /// A process of the person who signs in, such as `login` or `stdio`. It has no listener.
    Person,
    /// A gateway whose listener browsers reach at this address.
    Public(String),
    /// A gateway for which no such address is configured.
    Unnamed {
        /// The address of its listener for browsers of this machine, if it serves pages by TLS or on loopback.
        base: Option<String>,
        /// True if callers have to prove who they are.
        is_proof_required: bool,
    },
}

impl PageHost {
    /// The listener on which the holder of this token signs in.
    #[must_use]
    pub fn place(&self, subject: &str) -> Place {
        let must_prove = match self {
            Self::Person => false,
            Self::Public(_) => true,
            Self::Unnamed { is_proof_required, .. } if subject == EVERYBODY => *is_proof_required,
            Self::Unnamed { .. } => subject != "anonymous" && !subject.starts_with("local:"),
        };
        if must_prove { Place::Listener } else { Place::Loopback }
    }

    /// The address of the listener, without a slash at its end.
    #[must_use]
    pub fn listener(&self) -> Option<&str> {
        match self {
            Self::Person => None,
            Self::Public(url) => Some(url.trim_end_matches('/')),
            Self::Unnamed { base, .. } => base.as_deref(),
        }
    }

    /// True if browsers come to this place by TLS.
    #[must_use]
    pub fn is_secure(&self, place: Place) -> bool {
        place == Place::Listener && self.listener().is_some_and(|url| url.starts_with("https://"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 31, point 2.
    #[test]
    fn a_p5_holders_that_prove_who_they_are_sign_in_where_browsers_can_too() {
        let unnamed = |is_proof_required| PageHost::Unnamed { base: None, is_proof_required };
        for subject in ["user:ada", "cert:ab", "corp:eve", "key:ci"] {
            assert_eq!(unnamed(true).place(subject), Place::Listener, "{subject}");
            assert_eq!(unnamed(false).place(subject), Place::Listener, "{subject}");
            assert_eq!(PageHost::Person.place(subject), Place::Loopback, "{subject}");
        }
        for subject in ["anonymous", "local:ada"] {
            assert_eq!(unnamed(true).place(subject), Place::Loopback, "{subject}");
        }
        assert_eq!(unnamed(true).place(EVERYBODY), Place::Listener, "a shared token");
        assert_eq!(unnamed(false).place(EVERYBODY), Place::Loopback);
        assert_eq!(PageHost::Public("https://gate.example/".to_owned()).place("anonymous"), Place::Listener);
    }
}
