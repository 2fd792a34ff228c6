//! Check of a client's `security_context` against the caller's identity.

use crate::fault::{Fault, FaultKind};
use signalbox_wire::json;

/// Maximum number of permissions named in one message.
pub const MAX_PERMISSIONS: usize = 256;

/// Identity of the caller for the check.
#[derive(Copy, Clone)]
pub struct CallerContext<'a> {
    /// Principal of the caller.
    pub user: &'a str,
    /// Session of the caller; a request over HTTP has none.
    pub session: Option<&'a str>,
    /// Returns true if the caller has this permission.
    pub has: &'a dyn Fn(&str) -> bool,
}

/// Compares a `security_context` with the caller's identity. Absent members claim nothing, and members unknown to the
/// dialect are ignored.
///
/// # Errors
/// Returns a fault for the first claim that is false or malformed.
pub fn check(context: &[u8], known: &CallerContext<'_>) -> Result<(), Fault> {
    if !context.starts_with(b"{") {
        return Err(invalid("`security_context` must be an object"));
    }
    for member in json::members(context) {
        let (key, value) = (member.key.of(context), member.value.of(context));
        if value == b"null" {
            continue;
        }
        if json::key_eq(key, "user_id") {
            let user = json::string(value).ok_or_else(|| invalid("`security_context.user_id` must be a string"))?;
            if *user != *known.user {
                return Err(invalid("`security_context.user_id` is not the caller").with_str("member", "user_id"));
            }
        } else if json::key_eq(key, "session_id") {
            let session =
                json::string(value).ok_or_else(|| invalid("`security_context.session_id` must be a string"))?;
            if known.session != Some(&*session) {
                let text = match known.session {
                    Some(_) => "`security_context.session_id` is not the session of this connection",
                    None => "`security_context.session_id` names a session, but over HTTP each request stands alone",
                };
                return Err(invalid(text).with_str("member", "session_id"));
            }
        } else if json::key_eq(key, "permissions") {
            permissions(value, known)?;
        }
    }
    Ok(())
}

fn permissions(value: &[u8], known: &CallerContext<'_>) -> Result<(), Fault> {
    let wrong = || invalid("`security_context.permissions` must be a list of strings");
    if !value.starts_with(b"[") {
        return Err(wrong());
    }
    for (at, element) in json::elements(value).enumerate() {
        if at == MAX_PERMISSIONS {
            let text = format!("`security_context.permissions` has more than {MAX_PERMISSIONS} entries");
            return Err(invalid(&text));
        }
        let permission = json::string(element.of(value)).ok_or_else(wrong)?;
        if !(known.has)(&permission) {
            let shown: String = permission.chars().take(64).collect();
            let text = format!("the caller does not have the permission `{shown}`");
            return Err(invalid(&text).with_str("member", "permissions").with_str("permission", &shown));
        }
    }
    Ok(())
}

fn invalid(text: &str) -> Fault {
    Fault::new(FaultKind::InvalidSecurityContext, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(context: &str, session: Option<&str>) -> Option<String> {
        let has = |permission: &str| permission == "read:filesystem";
        check(context.as_bytes(), &CallerContext { user: "ada", session, has: &has }).err().map(|fault| fault.message)
    }

    /// Proves G-5.
    #[test]
    fn what_is_so_passes_and_so_does_what_claims_nothing() {
        for context in [
            "{}",
            r#"{"user_id":"ada","session_id":"s1","permissions":["read:filesystem"]}"#,
            r#"{"user_id":null,"session_id":null,"permissions":null}"#,
            r#"{"permissions":[],"trace":{"user_id":"eve"}}"#,
        ] {
            assert_eq!(told(context, Some("s1")), None, "{context}");
        }
    }

    /// Proves G-5.
    #[test]
    fn lies_are_refused_however_they_are_written() {
        for (context, part) in [
            (r#"{"user_id":"eve"}"#, "user_id` is not the caller"),
            (r#"{"\u0075ser_id":"eve"}"#, "user_id` is not the caller"),
            (r#"{"user_id":7}"#, "must be a string"),
            (r#"{"session_id":"s2"}"#, "not the session"),
            (r#"{"session_id":[]}"#, "must be a string"),
            (r#"{"permissions":["read:filesystem","admin:all"]}"#, "permission `admin:all`"),
            (r#"{"permissions":"admin:all"}"#, "list of strings"),
            (r#"{"permissions":[7]}"#, "list of strings"),
            ("[]", "must be an object"),
        ] {
            let told = told(context, Some("s1")).unwrap_or_else(|| panic!("{context} passed"));
            assert!(told.contains(part), "{context}: {told}");
        }
        assert!(told(r#"{"session_id":"s1"}"#, None).unwrap().contains("stands alone"));
    }

    /// Proves G-5.
    #[test]
    fn a_message_names_no_more_permissions_than_anybody_needs() {
        let context = |count| format!(r#"{{"permissions":[{}]}}"#, vec![r#""read:filesystem""#; count].join(","));
        assert_eq!(told(&context(MAX_PERMISSIONS), None), None);
        assert!(told(&context(MAX_PERMISSIONS + 1), None).unwrap().contains("more than 256"));
    }
}
