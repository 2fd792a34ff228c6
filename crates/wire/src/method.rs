//! Methods of the protocol, and the revisions that have them.

use crate::revision::Revision;

/// Senders of a method.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Sent by clients only.
    ClientToServer,
    /// Sent by servers only.
    ServerToClient,
    /// Sent by either side.
    Both,
}

/// Opens a session. Old revisions only.
pub const INITIALIZE: &str = "initialize";
/// Completes the handshake of a session.
pub const INITIALIZED: &str = "notifications/initialized";
/// Checks that the peer is alive.
pub const PING: &str = "ping";
/// Sets the lowest severity of log messages to send.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Subscribes to changes of a resource.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends a subscription to a resource.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Announces a change of the client's roots.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// Lists the server's tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool by name.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists the server's prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Renders a prompt with arguments.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists the server's resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Reads a resource by URI.
pub const RESOURCES_READ: &str = "resources/read";
/// Lists the server's resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Requests completions for an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Requests a message from the client's model.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Requests the client's roots.
pub const ROOTS_LIST: &str = "roots/list";
/// Requests input from the client's user.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// Announces that an elicitation by URL is complete.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Requests the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Cancels a running task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Requests the result of a task.
pub const TASKS_RESULT: &str = "tasks/result";
/// Lists the receiver's tasks.
pub const TASKS_LIST: &str = "tasks/list";
/// Sends input that a task asked for.
pub const TASKS_UPDATE: &str = "tasks/update";
/// Announces a change of a task. 2025-11-25 only.
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// Announces a change of a task. Since 2026-07-28.
pub const TASKS_CHANGED: &str = "notifications/tasks";
/// Requests the description of a stateless server.
pub const SERVER_DISCOVER: &str = "server/discover";
/// Opens a stream of notifications.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Confirms a stream of notifications.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Reports the progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Carries a log message.
pub const MESSAGE: &str = "notifications/message";
/// Cancels a running request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Announces a change in the list of tools.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// Announces a change in the list of prompts.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// Announces a change in the list of resources.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// Announces a change of a subscribed resource.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";

use Direction::{Both, ClientToServer, ServerToClient};

/// All methods with their sender and, oldest revision first, a `y` if the method may be sent as a message of its own.
/// In 2026-07-28, sampling, elicitation and roots occur inside `inputRequests` only, and tasks are an extension.
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

/// Iterates over the methods of all revisions.
pub fn all() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _, _)| *name)
}

/// Returns the static string for a method of any revision.
#[must_use]
pub fn intern(method: &str) -> Option<&'static str> {
    all().find(|name| *name == method)
}

/// Returns the static string for a method that a string token, including its quotes, contains without escapes.
pub(crate) fn intern_token(token: &[u8]) -> Option<&'static str> {
    let [b'"', method @ .., b'"'] = token else { return None };
    all().find(|name| name.as_bytes() == method)
}

/// Returns `true` if `method` may be sent in `revision`.
#[must_use]
pub fn exists(method: &str, revision: Revision) -> bool {
    METHODS.iter().any(|(name, _, known)| *name == method && known[revision as usize] == b'y')
}

/// Returns the sender of `method`, or `None` if no revision has it.
#[must_use]
pub fn direction(method: &str) -> Option<Direction> {
    METHODS.iter().find(|(name, _, _)| *name == method).map(|(_, direction, _)| *direction)
}

/// Returns `true` for the name of a notification.
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
