//! Check of `tools/register` requests. Registration is not served yet, but a malformed request is reported as such
//! first.

use crate::fault::{Fault, FaultKind};
use signalbox_wire::json;

/// Required type of a member.
#[derive(Copy, Clone)]
enum Shape {
    Text,
    Texts,
    Object,
    Seconds,
    Bytes,
}

/// Every member of a registration, by its path.
const MEMBERS: [(&[&str], Shape); 13] = [
    (&["tool_metadata"], Shape::Object),
    (&["tool_metadata", "name"], Shape::Text),
    (&["tool_metadata", "version"], Shape::Text),
    (&["tool_metadata", "description"], Shape::Text),
    (&["tool_metadata", "author"], Shape::Text),
    (&["tool_metadata", "categories"], Shape::Texts),
    (&["security_profile"], Shape::Object),
    (&["security_profile", "permissions"], Shape::Texts),
    (&["security_profile", "sandbox_level"], Shape::Text),
    (&["security_profile", "resource_limits", "max_execution_time"], Shape::Seconds),
    (&["security_profile", "resource_limits", "max_memory"], Shape::Bytes),
    (&["schema", "input"], Shape::Object),
    (&["schema", "output"], Shape::Object),
];

/// Values of `sandbox_level` (GO-9).
const SANDBOX_LEVELS: [&str; 4] = ["none", "process", "container", "vm"];

/// Checks the params of a registration.
///
/// # Errors
/// Returns a fault that names the missing members, or the first invalid one.
pub fn check(params: &[u8]) -> Result<(), Fault> {
    let mut missing = Vec::new();
    for (path, shape) in MEMBERS {
        let Some(value) = json::path(params, path).map(|span| span.of(params)) else {
            missing.push(path.join("."));
            continue;
        };
        if let Err(expected) = shape.fits(value) {
            return Err(Fault::new(FaultKind::InvalidParams, format!("`{}` must be {expected}", path.join("."))));
        }
    }
    if !missing.is_empty() {
        return Err(missing_fields(&missing));
    }
    let level = json::path(params, &["security_profile", "sandbox_level"]).and_then(|at| json::string(at.of(params)));
    let is_known = |level: &str| SANDBOX_LEVELS.iter().any(|word| word.eq_ignore_ascii_case(level));
    if !level.is_some_and(|level| is_known(&level)) {
        let text = format!("`security_profile.sandbox_level` must be one of {}", SANDBOX_LEVELS.join(", "));
        return Err(Fault::new(FaultKind::InvalidParams, text));
    }
    Ok(())
}

/// Returns the fault that names missing members.
#[must_use]
pub fn missing_fields(fields: &[String]) -> Fault {
    let quoted: Vec<String> = fields.iter().map(|field| json::quote(field)).collect();
    Fault::new(FaultKind::MissingFields, format!("missing in `params`: {}", fields.join(", ")))
        .with_raw("fields", format!("[{}]", quoted.join(",")))
}

/// Returns the refusal of a well-formed registration.
#[must_use]
pub fn not_served() -> Fault {
    let text =
        "tools are not registered over the protocol in this version; the operator adds them to the configuration";
    Fault::new(FaultKind::NotServed, text)
}

impl Shape {
    fn fits(self, value: &[u8]) -> Result<(), &'static str> {
        let number = || std::str::from_utf8(value).ok()?.parse::<f64>().ok();
        match self {
            Self::Text if json::string(value).is_some_and(|text| !text.is_empty()) => Ok(()),
            Self::Text => Err("a string that is not empty"),
            Self::Texts => {
                let all = json::elements(value).all(|element| json::string(element.of(value)).is_some());
                if value.starts_with(b"[") && all { Ok(()) } else { Err("a list of strings") }
            }
            Self::Object if value.starts_with(b"{") => Ok(()),
            Self::Object => Err("an object"),
            Self::Seconds if number().is_some_and(|seconds| seconds > 0.0) => Ok(()),
            Self::Seconds => Err("a number of seconds above 0"),
            Self::Bytes if number().is_some_and(|bytes| bytes >= 1.0 && bytes.fract() == 0.0) => Ok(()),
            Self::Bytes => Err("a whole number of bytes above 0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"tool_metadata":{"name":"directory_list","version":"1.0.0","description":"Secure directory listing tool","author":"Groundhog Team","categories":["filesystem","utility"]},"security_profile":{"permissions":["read:filesystem"],"sandbox_level":"container","resource_limits":{"max_execution_time":30,"max_memory":268435456}},"schema":{"input":{},"output":{}}}"#;

    /// Proves G-6, G-18 and GO-9.
    #[test]
    fn the_specified_message_has_the_right_shape_and_every_wrong_one_is_named() {
        assert_eq!(check(DOCUMENT.as_bytes()), Ok(()));
        for (before, after, told) in [
            (r#""name":"directory_list","#, "", "missing in `params`: tool_metadata.name"),
            (r#""name":"directory_list""#, r#""name":"""#, "`tool_metadata.name` must be a string"),
            (r#"["filesystem","utility"]"#, "[1]", "`tool_metadata.categories` must be a list of strings"),
            ("268435456", "2.5", "max_memory` must be a whole number"),
            (":30,", ":0,", "max_execution_time` must be a number of seconds"),
            ("container", "bottle", "must be one of none, process, container, vm"),
            (r#","output":{}"#, "", "missing in `params`: schema.output"),
        ] {
            let changed = DOCUMENT.replacen(before, after, 1);
            assert_ne!(changed, DOCUMENT);
            let fault = check(changed.as_bytes()).unwrap_err();
            assert!(fault.message.contains(told), "{}", fault.message);
        }
        assert_eq!(check(b"{}").unwrap_err().kind, FaultKind::MissingFields);
    }
}
