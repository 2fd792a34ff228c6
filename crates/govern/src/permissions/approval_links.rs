//! Links to the approval form of a held call. A link names its hold and carries a MAC of the gateway. The form carries
//! a second MAC that binds it to the person it was shown to, so that no other page can submit it on their behalf.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use signalbox_wire::hex::hex;

/// Length of the truncated MAC in a link, in bytes.
const SHORT: usize = 16;

/// Creates and verifies links, with a key that lives as long as the process.
#[derive(Debug)]
pub struct ApprovalLinks(Key);

impl ApprovalLinks {
    /// Creates the links under this key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Key::new(HMAC_SHA256, &key))
    }

    /// Returns the last path segment of the link for a hold.
    #[must_use]
    pub fn link(&self, hold: u64) -> String {
        format!("{hold}-{}", self.mark(b"link", hold, ""))
    }

    /// Returns the hold that a link names, if the link is valid.
    #[must_use]
    pub fn hold(&self, link: &str) -> Option<u64> {
        let hold = link.split_once('-')?.0.parse().ok()?;
        same(&self.link(hold), link).then_some(hold)
    }

    /// Returns the token for the form about a hold as shown to this principal.
    #[must_use]
    pub fn form_token(&self, hold: u64, principal: &str) -> String {
        self.mark(b"form", hold, principal)
    }

    /// Returns true if the form was shown to this principal.
    #[must_use]
    pub fn is_form_token(&self, hold: u64, principal: &str, token: &str) -> bool {
        same(&self.form_token(hold, principal), token)
    }

    fn mark(&self, purpose: &[u8], hold: u64, principal: &str) -> String {
        let mut about = purpose.to_vec();
        about.extend_from_slice(&hold.to_be_bytes());
        about.extend_from_slice(principal.as_bytes());
        let digest = hmac::sign(&self.0, &about);
        hex(digest.as_ref().get(..SHORT).unwrap_or_default())
    }
}

fn same(one: &str, other: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_links_and_forms_are_recognised() {
        let (links, others) = (ApprovalLinks::new([1; 32]), ApprovalLinks::new([2; 32]));
        let link = links.link(7);
        assert_eq!((links.hold(&link), others.hold(&link)), (Some(7), None));
        for bad in ["", "7", "7-", "8-00", "-1-2", &link.replace("7-", "8-"), &link.to_uppercase(), &format!("0{link}")]
        {
            assert_eq!(links.hold(bad), None, "{bad}");
        }
        let token = links.form_token(7, "ada");
        assert!(links.is_form_token(7, "ada", &token));
        assert!(!links.is_form_token(7, "eve", &token) && !links.is_form_token(8, "ada", &token));
        assert!(!links.is_form_token(7, "ada", &link) && !others.is_form_token(7, "ada", &token));
    }
}
