//! Configuration keys of permissions: roles, policies, switches, and constraints on tool calls.

use crate::key_parts::{count, key, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

/// Every key of `permissions`, `roles`, `kill_switch`, `constraints` and `limits`, in the order of the reference.
pub(crate) const PERMISSION_KEYS: &[ConfigKey] = &[
    key(
        "permissions.mode",
        one_of(&["enforce", "shadow"], "enforce"),
        "`shadow` decides and records what would be denied, and stops nothing.",
    ),
    key(
        "permissions.reveal",
        KeyKind::Flag(false),
        "Tell a caller that uses a hidden entry that it is denied, and why. By default the entry is answered like a name that does not exist.",
    ),
    key("permissions.default_role", KeyKind::Text(""), "The role of callers who have none."),
    key(
        "permissions.policies",
        KeyKind::Text(""),
        "A folder of policies in Cedar: all files that end in `.cedar`. They are loaded together or not at all; see docs/permissions.md.",
    ),
    key(
        "permissions.approve_own",
        KeyKind::Flag(false),
        "Let callers with the role `approver` decide about their own calls.",
    ),
    key(
        "permissions.ask_timeout",
        seconds(300.0, 24.0 * 3600.0),
        "Time that an approver has to decide about a call that needs consent.",
    ),
    key(
        "permissions.ask.of",
        one_of(&["approver", "caller"], "approver"),
        "Recipient of the question if a role or policy needs consent: callers with the role `approver`, or the user of the calling client, by elicitation. `@of` of a policy says otherwise.",
    ),
    key(
        "permissions.ask.without_elicitation",
        one_of(&["deny", "approver"], "deny"),
        "Behaviour if the caller must be asked and its client cannot ask: the call is denied, or approvers are asked.",
    ),
    key(
        "permissions.ask.webhook",
        KeyKind::Text(""),
        "Address, such as that of a chat, that is notified of each call that waits for approvers, with a link to the page on which they decide.",
    ),
    key(
        "permissions.ask.webhook_token_env",
        KeyKind::Text(""),
        "Environment variable with the token that is sent to this address, as `Authorization: Bearer TOKEN`.",
    ),
    key(
        "permissions.ask.public_url",
        KeyKind::Text(""),
        "The address under which browsers reach the gateway, for those links. By default `auth.outbound.public_url`, or the address of the listener.",
    ),
    key(
        "permissions.break_glass.allowed",
        KeyKind::Flag(false),
        "Allow `signalbox grant break-glass`: for a while one caller may use everything but what is switched off.",
    ),
    key("permissions.break_glass.longest", seconds(3600.0, 24.0 * 3600.0), "Maximum duration of such a grant."),
    key(
        "permissions.break_glass.webhook",
        KeyKind::Text(""),
        "Address that is notified when a caller breaks the glass, and when that ends.",
    ),
    key(
        "permissions.decision_point.url",
        KeyKind::Text(""),
        "A service that is asked about every use of `entries` that roles and policies allow.",
    ),
    key(
        "permissions.decision_point.api",
        one_of(&["authzen", "opa"], "authzen"),
        "Interface of the service: the AuthZEN Authorization API, or the data API of the Open Policy Agent.",
    ),
    key("permissions.decision_point.timeout", seconds(2.0, 60.0), "Time limit for its answer."),
    key(
        "permissions.decision_point.cache",
        KeyKind::Seconds { default: None, max: 24.0 * 3600.0 },
        "Time for which its answer is cached for the same caller, address, entry and arguments. By default it is asked each time.",
    ),
    key(
        "permissions.decision_point.when_down",
        one_of(&["deny", "allow"], "deny"),
        "Decision while it does not answer.",
    ),
    key(
        "permissions.decision_point.entries",
        KeyKind::Texts,
        "Entries that it is asked about, as patterns `BACKEND` or `BACKEND/NAME`; by default all.",
    ),
    key(
        "roles.NAME.permissions",
        KeyKind::Texts,
        "Permissions of the role NAME: `*`, `tools.read`, `tools.execute` (which includes reading), and permissions that `tools.NAME.permissions` asks for. By default `tools.execute`.",
    ),
    key(
        "roles.NAME.allow",
        KeyKind::Texts,
        "The tools, prompts and resources that it is for, as patterns `BACKEND` or `BACKEND/NAME`. By default all.",
    ),
    key(
        "roles.NAME.deny",
        KeyKind::Texts,
        "Tools, prompts and resources that its holders may not use, whatever their other roles allow.",
    ),
    key("roles.NAME.ask", KeyKind::Texts, "Tools, prompts and resources whose every use needs an approval."),
    key(
        "kill_switch.tools",
        KeyKind::Texts,
        "Tools, prompts and resources that are switched off for all callers, as patterns `BACKEND/NAME`.",
    ),
    key("kill_switch.backends", KeyKind::Texts, "Backends that are switched off, as patterns."),
    key("kill_switch.principals", KeyKind::Texts, "Callers who are switched off, as patterns."),
    key(
        "kill_switch.quarantine",
        KeyKind::Texts,
        "Tools and backends that are put aside until an operator has looked at them, as patterns `BACKEND` or `BACKEND/NAME`.",
    ),
    key(
        "constraints.NAME.roles",
        KeyKind::Texts,
        "For callers with one of these roles; by default for all callers. NAME is a pattern `BACKEND` or `BACKEND/NAME` of tools.",
    ),
    key(
        "constraints.NAME.path_arguments",
        KeyKind::Texts,
        "The arguments that are paths, `file:` addresses, or lists of such.",
    ),
    key(
        "constraints.NAME.folders",
        KeyKind::Texts,
        "The folders within which those paths have to lie. Paths are compared as text; links are not followed.",
    ),
    key(
        "constraints.NAME.redact",
        KeyKind::Texts,
        "Regular expressions for text that is removed from answers before callers get them.",
    ),
    key("constraints.NAME.redact_members", KeyKind::Texts, "Names of members of answers whose values are removed."),
    key(
        "limits.NAME.max_concurrent",
        count(0, 0, 1_000_000),
        "Maximum number of calls of a tool that run at once. NAME is a pattern `BACKEND` or `BACKEND/NAME`; if several match, the strictest bound applies. 0 means no limit.",
    ),
    key(
        "limits.NAME.max_result",
        count(0, 0, 1 << 40),
        "Maximum size of an answer of the tool, in bytes; 0 means no limit.",
    ),
    key(
        "limits.NAME.max_repeats",
        count(0, 0, 1_000_000),
        "Maximum number of times a caller may make the same call in a row, with the same arguments; 0 means no limit.",
    ),
    key(
        "limits.NAME.calls_per_minute",
        count(0, 0, 1 << 40),
        "Maximum number of calls of the tool per caller and minute, in place of `mcp.protocol.rate_limits.user_tool_requests_per_minute`; it may be more. 0 leaves that as it is.",
    ),
    key(
        "limits.NAME.calls_per_day",
        count(0, 0, 1 << 40),
        "Maximum number of calls of the tool per caller and day (UTC); 0 means no limit.",
    ),
    key(
        "limits.NAME.timeout",
        KeyKind::Seconds { default: None, max: 24.0 * 3600.0 },
        "Time limit for a call of the tool, in place of `backends.NAME.timeout`; if several patterns match, the shortest.",
    ),
    key(
        "limits.NAME.price",
        count(0, 0, 1 << 40),
        "Cost of a call, in units of `mcp.protocol.rate_limits.user_budget_per_day`.",
    ),
    key(
        "mcp.protocol.rate_limits.user_budget_per_day",
        count(0, 0, 1 << 40),
        "Amount that each caller may spend per day (UTC) on tools that have a price; 0 means no limit.",
    ),
];
