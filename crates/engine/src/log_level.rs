//! The eight log levels of MCP, in order.

/// Level as named by `logging/setLevel` and `notifications/message`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogLevel {
    /// Detailed information for debugging.
    Debug,
    /// Informational messages about ordinary events.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warnings: conditions that may lead to an error.
    Warning,
    /// Errors: operations that failed.
    Error,
    /// Critical conditions, such as a failed component.
    Critical,
    /// Conditions that need action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

const NAMES: [(&str, LogLevel); 8] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Critical),
    ("alert", LogLevel::Alert),
    ("emergency", LogLevel::Emergency),
];

impl LogLevel {
    /// Parses a level by its name on the wire.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }

    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMES[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_reads_back_and_they_are_ordered() {
        for (name, level) in NAMES {
            assert_eq!(LogLevel::parse(name), Some(level));
            assert_eq!(level.as_str(), name);
        }
        assert!(LogLevel::Debug < LogLevel::Emergency);
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
