//! Listeners for sign-in pages. A person who signs in lends an account to the holder, so a holder that authenticates
//! needs a page on which the browser can authenticate too.

use crate::oauth_credentials::SHARED_SUBJECT;

/// Listener that serves the pages of a sign-in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Loopback port that serves only these pages. Browsers cannot authenticate there.
    Loopback,
    /// The gateway's own listener.
    Listener,
}

/// Process that serves the pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageHost {
    /// Process of the person who signs in, such as `login` or `stdio`. It has no listener.
    Person,
    /// Gateway with a listener that browsers reach at this URL.
    Public(String),
    /// Gateway without a configured URL.
    Unnamed {
        /// Base URL of its listener for browsers on this machine, if it serves pages over TLS or on loopback.
        base: Option<String>,
        /// True if callers have to authenticate.
        is_proof_required: bool,
    },
}

impl PageHost {
    /// Returns the listener on which the holder with this subject signs in.
    #[must_use]
    pub fn place(&self, subject: &str) -> Place {
        let must_prove = match self {
            Self::Person => false,
            Self::Public(_) => true,
            Self::Unnamed { is_proof_required, .. } if subject == SHARED_SUBJECT => *is_proof_required,
            Self::Unnamed { .. } => subject != "anonymous" && !subject.starts_with("local:"),
        };
        if must_prove { Place::Listener } else { Place::Loopback }
    }

    /// Returns the base URL of the listener, without a trailing slash.
    #[must_use]
    pub fn listener(&self) -> Option<&str> {
        match self {
            Self::Person => None,
            Self::Public(url) => Some(url.trim_end_matches('/')),
            Self::Unnamed { base, .. } => base.as_deref(),
        }
    }

    /// Returns true if browsers reach this place over TLS.
    #[must_use]
    pub fn is_secure(&self, place: Place) -> bool {
        place == Place::Listener && self.listener().is_some_and(|url| url.starts_with("https://"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_that_prove_who_they_are_sign_in_where_browsers_can_too() {
        let unnamed = |is_proof_required| PageHost::Unnamed { base: None, is_proof_required };
        for subject in ["user:ada", "cert:ab", "corp:eve", "key:ci"] {
            assert_eq!(unnamed(true).place(subject), Place::Listener, "{subject}");
            assert_eq!(unnamed(false).place(subject), Place::Listener, "{subject}");
            assert_eq!(PageHost::Person.place(subject), Place::Loopback, "{subject}");
        }
        for subject in ["anonymous", "local:ada"] {
            assert_eq!(unnamed(true).place(subject), Place::Loopback, "{subject}");
        }
        assert_eq!(unnamed(true).place(SHARED_SUBJECT), Place::Listener, "a shared token");
        assert_eq!(unnamed(false).place(SHARED_SUBJECT), Place::Loopback);
        assert_eq!(PageHost::Public("https://gate.example/".to_owned()).place("anonymous"), Place::Listener);
    }
}
