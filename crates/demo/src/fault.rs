//! Errors of the tools, each with a code, a reason and a suggestion.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value, json};
use signalbox_embedded::BadArguments;

/// Maximum length of a requested path quoted in an error.
const MAX_SHOWN_PATH: usize = 256;

/// Error of a tool. Displays the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ToolFault {
    /// The arguments do not match the tool's schema.
    #[error(transparent)]
    InvalidArguments(#[from] BadArguments),
    /// The path has too many characters.
    #[error("the path has {length} characters; at most {limit} are accepted")]
    PathTooLong {
        /// Number of characters in the path.
        length: usize,
        /// Maximum number of characters.
        limit: usize,
    },
    /// The path contains a sequence that only serves to escape the root.
    #[error("the path contains {0}")]
    DangerousPathSequence(&'static str),
    /// The path is outside the root folder.
    #[error("Path not in allowed list")]
    PathNotAllowed,
    /// The path is inside a blocked system folder.
    #[error("the path is inside a system folder that is never shown")]
    PathBlocked,
    /// The path is inside a folder that holds keys.
    #[error("the path is inside a folder that holds keys")]
    SensitivePathAccess,
    /// A part of the path is a symbolic link.
    #[error("a part of the path is a symbolic link, and links are not followed")]
    SymlinksNotAllowed,
    /// The requested depth exceeds the maximum.
    #[error("a depth of {asked} was asked for; at most {limit} levels are walked")]
    DepthLimitExceeded {
        /// Requested number of levels.
        asked: u64,
        /// Maximum number of levels.
        limit: u64,
    },
    /// The walk exceeded its time limit.
    #[error("the listing was not finished within {} seconds", .0.as_secs())]
    ExecutionTimeout(Duration),
    /// The rate limit is exceeded.
    #[error("too many calls in a short time; the next one is accepted in {} ms", .0.as_millis() + 1)]
    RateLimitExceeded(Duration),
    #[error("there is nothing at this path")]
    PathNotFound,
    /// The path is not a directory.
    #[error("there is something at this path, but it is not a directory")]
    NotADirectory,
    /// The operating system denied access or failed.
    #[error("the directory could not be read: {0}")]
    Unreadable(io::ErrorKind),
    /// The worker ended without a result.
    #[error("the listing ended before it had a result")]
    Interrupted,
}

impl ToolFault {
    /// Returns the error code for programs. The first ten are part of the specified interface of the tools.
    pub(super) fn code(&self) -> &'static str {
        match self {
            ToolFault::PathNotAllowed => "path_not_allowed",
            ToolFault::PathTooLong { .. } => "PathTooLong",
            ToolFault::PathBlocked => "PathBlocked",
            ToolFault::SymlinksNotAllowed => "SymlinksNotAllowed",
            ToolFault::DangerousPathSequence(_) => "DangerousPathSequence",
            ToolFault::SensitivePathAccess => "SensitivePathAccess",
            ToolFault::DepthLimitExceeded { .. } => "DepthLimitExceeded",
            ToolFault::ExecutionTimeout(_) => "ExecutionTimeout",
            ToolFault::RateLimitExceeded(_) => "RateLimitExceeded",
            ToolFault::InvalidArguments(_) => "InvalidArguments",
            ToolFault::PathNotFound => "PathNotFound",
            ToolFault::NotADirectory => "NotADirectory",
            ToolFault::Unreadable(_) => "Unreadable",
            ToolFault::Interrupted => "Interrupted",
        }
    }

    /// Returns advice for the caller.
    pub(super) fn suggestion(&self) -> &'static str {
        match self {
            ToolFault::InvalidArguments(_) => "Correct the arguments as described and call again.",
            ToolFault::PathTooLong { .. } => "List a folder higher up, with `recursive` set.",
            ToolFault::DangerousPathSequence(_) => {
                "Write the path plainly, downwards from the root folder, such as ./src."
            }
            ToolFault::PathNotAllowed => "Request access to an allowed directory",
            ToolFault::PathBlocked | ToolFault::SensitivePathAccess => "Choose another folder.",
            ToolFault::SymlinksNotAllowed => "Use the real path that the link stands for, if it is inside the root.",
            ToolFault::DepthLimitExceeded { .. } => "Lower `max_depth`, then list the deeper folders one by one.",
            ToolFault::ExecutionTimeout(_) => "Lower `max_depth` or list a smaller folder.",
            ToolFault::RateLimitExceeded(_) => "Wait, or list more at once with `recursive` and `limit`.",
            ToolFault::PathNotFound => "List the parent folder to see what it holds.",
            ToolFault::NotADirectory => "List the folder that holds it; its entry shows size and times.",
            ToolFault::Unreadable(_) => "Choose a folder that the gateway's user may read.",
            ToolFault::Interrupted => "Call again.",
        }
    }

    /// Returns the error type that groups related codes.
    fn family(&self) -> &'static str {
        match self {
            ToolFault::PathNotAllowed
            | ToolFault::PathBlocked
            | ToolFault::SensitivePathAccess
            | ToolFault::SymlinksNotAllowed
            | ToolFault::DangerousPathSequence(_)
            | ToolFault::RateLimitExceeded(_) => "security_error",
            ToolFault::InvalidArguments(_) | ToolFault::PathTooLong { .. } | ToolFault::DepthLimitExceeded { .. } => {
                "validation_error"
            }
            ToolFault::ExecutionTimeout(_)
            | ToolFault::PathNotFound
            | ToolFault::NotADirectory
            | ToolFault::Unreadable(_)
            | ToolFault::Interrupted => "tool_error",
        }
    }

    /// Describes the error in one sentence.
    fn sentence(&self) -> String {
        match self {
            ToolFault::PathNotAllowed => "Access to the specified path is not permitted".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns `true` if the arguments did not match the schema, which older revisions report as a protocol error.
    pub(super) fn is_about_arguments(&self) -> bool {
        matches!(self, ToolFault::InvalidArguments(_))
    }

    /// Returns the error as structured data: type, code and details.
    pub(super) fn to_json(&self, requested_path: Option<&str>) -> Value {
        let mut details = Map::new();
        if let Some(path) = requested_path {
            let shown: String = path.chars().take(MAX_SHOWN_PATH).collect();
            details.insert("requested_path".into(), shown.into());
        }
        details.insert("reason".into(), self.to_string().into());
        details.insert("suggestion".into(), self.suggestion().into());
        json!({
            "error_type": self.family(),
            "error_code": self.code(),
            "error_message": self.sentence(),
            "details": details,
        })
    }

    /// Formats the error as one line for a model.
    pub(super) fn to_text(&self) -> String {
        format!("{}: {}. {}", self.code(), self, self.suggestion())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves GO-7.
    #[test]
    fn codes_are_spelled_as_specified() {
        let second = Duration::from_secs(1);
        let codes = [
            ToolFault::PathNotAllowed,
            ToolFault::PathTooLong { length: 2, limit: 1 },
            ToolFault::PathBlocked,
            ToolFault::SymlinksNotAllowed,
            ToolFault::DangerousPathSequence("x"),
            ToolFault::SensitivePathAccess,
            ToolFault::DepthLimitExceeded { asked: 11, limit: 10 },
            ToolFault::ExecutionTimeout(second),
            ToolFault::RateLimitExceeded(second),
        ]
        .map(|fault| fault.code());
        let row = "path_not_allowed, PathTooLong, PathBlocked, SymlinksNotAllowed, DangerousPathSequence, \
                   SensitivePathAccess, DepthLimitExceeded, ExecutionTimeout, RateLimitExceeded";
        assert_eq!(codes.join(", "), row);
    }

    #[test]
    fn details_name_path_reason_and_suggestion() {
        let long = "a".repeat(5000);
        let error = ToolFault::PathNotAllowed.to_json(Some(&long));
        assert_eq!(error["details"]["requested_path"].as_str().map(str::len), Some(MAX_SHOWN_PATH));
        assert!(error["details"]["reason"].is_string() && error["details"]["suggestion"].is_string());
        assert!(ToolFault::PathNotFound.to_json(None)["details"].get("requested_path").is_none());
    }

    /// Proves G-9.
    #[test]
    fn a_path_outside_is_refused_in_the_specified_words() {
        let expected = json!({
            "error_type": "security_error",
            "error_code": "path_not_allowed",
            "error_message": "Access to the specified path is not permitted",
            "details": {
                "requested_path": "/etc/passwd",
                "reason": "Path not in allowed list",
                "suggestion": "Request access to an allowed directory",
            },
        });
        assert_eq!(ToolFault::PathNotAllowed.to_json(Some("/etc/passwd")), expected);
    }
}
