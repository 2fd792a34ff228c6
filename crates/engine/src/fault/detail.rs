//! Amount of fault detail shown to callers, by their trust level (G-24). The record always has all of it.
//!
//! | trust | shown |
//! |---|---|
//! | system | everything |
//! | verified | everything but paths, addresses and internal errors of the gateway |
//! | community | the problem with the caller's own message; for other faults, only the kind |
//! | untrusted | only the category of the fault |
//!
//! The word in `data.reason`, and the members a client acts on (retry time, sign-in address, missing scope), are always
//! shown.

use super::{Fault, FaultKind, Owner};
use crate::standing::TrustLevel;
use bytes::Bytes;
use signalbox_wire::json;
use std::borrow::Cow;

/// Policy for the amount of detail shown to callers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ErrorDetail {
    /// Every caller is shown everything.
    #[default]
    Full,
    /// The caller's trust level decides.
    ByTrust,
}

/// Members of `data` that clients act on.
const NEEDED: [&str; 10] = [
    "retryAfter",
    "limit",
    "url",
    "elicitations",
    "scope",
    "error",
    "supported",
    "requested",
    "requiredCapabilities",
    "fields",
];

impl Fault {
    /// Returns the fault in the detail that this trust level may see.
    #[must_use]
    pub fn told(&self, detail: ErrorDetail, trust: TrustLevel) -> Cow<'_, Self> {
        // What is wrong with arguments quotes their sender and a schema that it sees.
        if detail == ErrorDetail::Full || self.kind == FaultKind::InvalidArguments {
            return Cow::Borrowed(self);
        }
        match trust {
            TrustLevel::System => Cow::Borrowed(self),
            TrustLevel::Verified => self.filtered(),
            TrustLevel::Community if self.owner() == Owner::Client => Cow::Owned(self.filtered().into_owned().bare()),
            TrustLevel::Community => Cow::Owned(self.saying(self.kind.advice().0)),
            TrustLevel::Untrusted => Cow::Owned(self.saying(self.kind.category().sentence())),
        }
    }

    /// Removes paths and addresses.
    fn filtered(&self) -> Cow<'_, Self> {
        let message = match self.kind {
            FaultKind::Internal => Cow::Borrowed(self.kind.advice().0),
            _ => without_places(&self.message),
        };
        let is_told = |(name, value): &&(&'static str, Bytes)| NEEDED.contains(name) || !names_place(value);
        let data: Vec<_> = self.data.iter().filter(is_told).cloned().collect();
        if message == self.message && data.len() == self.data.len() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { kind: self.kind, message: message.into_owned(), data })
    }

    /// Removes all members of `data` but those that clients act on.
    fn bare(mut self) -> Self {
        self.data.retain(|(name, _)| NEEDED.contains(name));
        self
    }

    fn saying(&self, message: &str) -> Self {
        Self { kind: self.kind, message: message.to_owned(), data: self.data.clone() }.bare()
    }
}

/// Returns true for a JSON string that contains a path or an address.
fn names_place(value: &[u8]) -> bool {
    json::string(value).is_some_and(|text| matches!(without_places(&text), Cow::Owned(_)))
}

/// Replaces absolute paths by `[path]`, and URLs and hosts with ports by `[address]`. Words are separated at white
/// space and at the quotes and brackets around them.
#[must_use]
pub fn without_places(text: &str) -> Cow<'_, str> {
    let is_edge = |letter: char| letter.is_whitespace() || "`'\"()<>,;".contains(letter);
    if !text.split(is_edge).any(|word| place(word).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_edge).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let (bare, tail) = split_full_stop(word);
        match place(word) {
            Some(name) => {
                out.push_str(name);
                out.push_str(tail);
            }
            None => {
                out.push_str(bare);
                out.push_str(tail);
            }
        }
        let edge = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..edge]);
        rest = &after[edge..];
    }
    Cow::Owned(out)
}

/// Splits the punctuation from the end of a word.
fn split_full_stop(word: &str) -> (&str, &str) {
    word.split_at(word.trim_end_matches(['.', ':', '!', '?']).len())
}

/// Returns the placeholder for a word that is or contains a path or an address, such as `path=/srv` or `10.0.0.1/x`.
fn place(word: &str) -> Option<&'static str> {
    let (word, _) = split_full_stop(word);
    let is_path = |part: &str| (part.len() > 1 && part.starts_with('/')) || part.starts_with("~/");
    if is_path(word) || word.contains(":\\") {
        return Some("[path]");
    }
    let mut parts = word.split(['/', '=', '?', '&', '#', '@', '|', '{', '}']);
    if word.contains("://") || parts.any(is_address) {
        return Some("[address]");
    }
    let mut parts = word.split([':', '=', '|', '[', ']', '{', '}', '&', '#']);
    parts.any(is_path).then_some("[path]")
}

/// Returns true for a host with a port, and for an IP address.
fn is_address(word: &str) -> bool {
    let has_port = word.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && (2..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    has_port || word.trim_matches(['[', ']']).parse::<core::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Fault {
        let text = "backend `a` cannot be reached: connect to 127.0.0.1:9200 (`/usr/bin/x`, http://h/p): refused.";
        Fault::new(FaultKind::BackendDown, text).with_str("backend", "a").with_str("file", "/etc/x")
    }

    /// Proves G-24.
    #[test]
    fn each_trust_level_is_told_less_than_the_one_above_it() {
        let fault = down();
        let told = |trust| fault.told(ErrorDetail::ByTrust, trust).into_owned();
        assert_eq!(told(TrustLevel::System), fault);
        let verified = told(TrustLevel::Verified);
        let text = "backend `a` cannot be reached: connect to [address] (`[path]`, [address]): refused.";
        assert_eq!((verified.message.as_str(), verified.data.len()), (text, 1));
        let community = told(TrustLevel::Community);
        assert_eq!((community.message.as_str(), community.data.len()), ("The tool's server is not there", 0));
        let untrusted = told(TrustLevel::Untrusted);
        assert_eq!((untrusted.message.as_str(), untrusted.data.len()), ("The tool failed", 0));
        assert_eq!(untrusted.reason(), fault.reason());
        assert_eq!(*fault.told(ErrorDetail::Full, TrustLevel::Untrusted), fault);
    }

    /// Proves G-24.
    #[test]
    fn what_a_client_acts_on_is_always_told() {
        let fault = Fault::new(FaultKind::RateLimited, "too often").with_raw("retryAfter", "7").with_str("by", "x");
        let untrusted = fault.told(ErrorDetail::ByTrust, TrustLevel::Untrusted);
        assert_eq!(untrusted.data, [("retryAfter", Bytes::from_static(b"7"))]);
        let fault = Fault::new(FaultKind::SignInNeeded, "sign in").with_str("url", "https://idp.example/x");
        assert_eq!(fault.told(ErrorDetail::ByTrust, TrustLevel::Verified).data.len(), 1);
    }

    /// Proves G-24.
    #[test]
    fn names_of_methods_tools_and_versions_are_no_places() {
        for text in [
            "Method not found: tools/x",
            "`2026-07-28` at 10:5",
            "a/b and c:d",
            "tool files/read_*",
            "/",
            "1.2.3",
            "a=b/c",
            "[x/y]",
        ] {
            assert!(matches!(without_places(text), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(without_places("at ::1, [::1]:80 or h:8080."), "at [address], [address] or [address].");
        assert_eq!(without_places("open ~/x and C:\\y: no"), "open [path] and [path]: no");
        for path in ["path=/srv/x", "ENOENT:/srv/x", "[/srv/x]", "{/srv/x}", "a|/srv/x", "at=~/x"] {
            assert_eq!(without_places(path), "[path]", "{path}");
        }
        for address in ["10.0.0.1:99/x", "10.0.0.1/x", "h:8080/x?y", "user@10.0.0.1", "at=h:8080", "u@h:8080/x"] {
            assert_eq!(without_places(address), "[address]", "{address}");
        }
    }
}
