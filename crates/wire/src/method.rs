//! The methods of the protocol, and which revision knows them.

use crate::revision::Revision;

/// Who sends a message.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Only clients.
    ClientToServer,
    /// Only servers.
    ServerToClient,
    /// Either side.
    Both,
}

/// `initialize`
pub const INITIALIZE: &str = "initialize";
/// `notifications/initialized`
pub const INITIALIZED: &str = "notifications/initialized";
/// `ping`
pub const PING: &str = "ping";
/// `logging/setLevel`
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// `resources/subscribe`
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// `resources/unsubscribe`
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// `notifications/roots/list_changed`
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// `tools/list`
pub const TOOLS_LIST: &str = "tools/list";
/// `tools/call`
pub const TOOLS_CALL: &str = "tools/call";
/// `prompts/list`
pub const PROMPTS_LIST: &str = "prompts/list";
/// `prompts/get`
pub const PROMPTS_GET: &str = "prompts/get";
/// `resources/list`
pub const RESOURCES_LIST: &str = "resources/list";
/// `resources/read`
pub const RESOURCES_READ: &str = "resources/read";
/// `resources/templates/list`
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// `completion/complete`
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// `sampling/createMessage`
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// `roots/list`
pub const ROOTS_LIST: &str = "roots/list";
/// `elicitation/create`
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// `notifications/elicitation/complete`
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// `tasks/get`
pub const TASKS_GET: &str = "tasks/get";
/// `tasks/cancel`
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// `tasks/result`
pub const TASKS_RESULT: &str = "tasks/result";
/// `tasks/list`
pub const TASKS_LIST: &str = "tasks/list";
/// `tasks/update`
pub const TASKS_UPDATE: &str = "tasks/update";
/// `notifications/tasks/status`
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// `notifications/tasks`
pub const TASKS_CHANGED: &str = "notifications/tasks";
/// `server/discover`
pub const SERVER_DISCOVER: &str = "server/discover";
/// `subscriptions/listen`
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// `notifications/subscriptions/acknowledged`
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// `notifications/progress`
pub const PROGRESS: &str = "notifications/progress";
/// `notifications/message`
pub const MESSAGE: &str = "notifications/message";
/// `notifications/cancelled`
pub const CANCELLED: &str = "notifications/cancelled";
/// `notifications/tools/list_changed`
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// `notifications/prompts/list_changed`
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// `notifications/resources/list_changed`
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// `notifications/resources/updated`
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";

use Direction::{Both, ClientToServer, ServerToClient};

/// Every method with its sender and, oldest revision first, a `y` where it may be sent as a message of its own.
/// In 2026-07-28 sampling, elicitation and roots travel inside `inputRequests` only, and tasks are an extension.
const METHODS: &[(&str, Direction, &[u8; 5])] = &[
    (INITIALIZE, ClientToServer, b"yyyy-"),
    (INITIALIZED, ClientToServer, b"yyyy-"),
    (PING, Both, b"yyyy-"),
    (LOGGING_SET_LEVEL, ClientToServer, b"yyyy-"),
    (RESOURCES_SUBSCRIBE, ClientToServer, b"yyyy-"),
    (RESOURCES_UNSUBSCRIBE, ClientToServer, b"yyyy-"),
    (ROOTS_LIST_CHANGED, ClientToServer, b"yyyy-"),
    (TOOLS_LIST, ClientToServer, b"yyyyy"),
    (TOOLS_CALL, ClientToServer, b"yyyyy"),
    (PROMPTS_LIST, ClientToServer, b"yyyyy"),
    (PROMPTS_GET, ClientToServer, b"yyyyy"),
    (RESOURCES_LIST, ClientToServer, b"yyyyy"),
    (RESOURCES_READ, ClientToServer, b"yyyyy"),
    (RESOURCES_TEMPLATES_LIST, ClientToServer, b"yyyyy"),
    (COMPLETION_COMPLETE, ClientToServer, b"yyyyy"),
    (SAMPLING_CREATE_MESSAGE, ServerToClient, b"yyyy-"),
    (ROOTS_LIST, ServerToClient, b"yyyy-"),
    (ELICITATION_CREATE, ServerToClient, b"--yy-"),
    (ELICITATION_COMPLETE, ServerToClient, b"---y-"),
    (TASKS_GET, Both, b"---yy"),
    (TASKS_CANCEL, Both, b"---yy"),
    (TASKS_RESULT, Both, b"---y-"),
    (TASKS_LIST, Both, b"---y-"),
    (TASKS_UPDATE, ClientToServer, b"----y"),
    (TASKS_STATUS, Both, b"---y-"),
    (TASKS_CHANGED, ServerToClient, b"----y"),
    (SERVER_DISCOVER, ClientToServer, b"----y"),
    (SUBSCRIPTIONS_LISTEN, ClientToServer, b"----y"),
    (SUBSCRIPTIONS_ACKNOWLEDGED, ServerToClient, b"----y"),
    (PROGRESS, Both, b"yyyyy"),
    (MESSAGE, ServerToClient, b"yyyyy"),
    (CANCELLED, Both, b"yyyyy"),
    (TOOLS_LIST_CHANGED, ServerToClient, b"yyyyy"),
    (PROMPTS_LIST_CHANGED, ServerToClient, b"yyyyy"),
    (RESOURCES_LIST_CHANGED, ServerToClient, b"yyyyy"),
    (RESOURCES_UPDATED, ServerToClient, b"yyyyy"),
];

/// All methods of all revisions.
pub fn all() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _, _)| *name)
}

/// The name as this program holds it, where any revision knows it.
#[must_use]
pub fn intern(method: &str) -> Option<&'static str> {
    all().find(|name| *name == method)
}

/// The name that a string token (with its quotes) spells without escapes, where any revision knows it.
pub(crate) fn intern_token(token: &[u8]) -> Option<&'static str> {
    let [b'"', method @ .., b'"'] = token else { return None };
    all().find(|name| name.as_bytes() == method)
}

/// Whether `method` may be sent in `revision`.
#[must_use]
pub fn exists(method: &str, revision: Revision) -> bool {
    METHODS.iter().any(|(name, _, known)| *name == method && known[revision as usize] == b'y')
}

/// Who sends `method`; `None` when no revision knows it.
#[must_use]
pub fn direction(method: &str) -> Option<Direction> {
    METHODS.iter().find(|(name, _, _)| *name == method).map(|(_, direction, _)| *direction)
}

/// Whether the name is one of a notification.
#[must_use]
pub fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    #[test]
    fn methods_come_and_go() {
        assert!(Revision::ALL.iter().all(|&revision| exists(TOOLS_CALL, revision)));
        assert!(exists(INITIALIZE, V2025_11_25) && !exists(INITIALIZE, V2026_07_28));
        assert!(!exists(SERVER_DISCOVER, V2025_11_25) && exists(SERVER_DISCOVER, V2026_07_28));
        assert!(!exists(ELICITATION_CREATE, V2025_03_26) && exists(ELICITATION_CREATE, V2025_06_18));
        assert!(!exists(SAMPLING_CREATE_MESSAGE, V2026_07_28));
        assert!(exists(SAMPLING_CREATE_MESSAGE, V2024_11_05));
        assert!(!exists("tools/nope", V2025_11_25));
    }

    #[test]
    fn directions() {
        assert_eq!(direction(TOOLS_CALL), Some(ClientToServer));
        assert_eq!(direction(ROOTS_LIST), Some(ServerToClient));
        assert_eq!(direction(PING), Some(Both));
        assert_eq!(direction("tools/nope"), None);
        assert!(is_notification(PROGRESS) && !is_notification(PING));
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METHODS.len());
    }
}
