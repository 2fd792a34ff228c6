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
        "Tell callers that they may not use what they may not see, and why. By default it is answered like a name that does not exist.",
    ),
    key("permissions.default_role", KeyKind::Text(""), "The role of callers who have none."),
    key(
        "permissions.policies",
        KeyKind::Text(""),
        "A folder of policies in Cedar: all files that end in `.cedar`. They are taken over together or not at all; see docs/permissions.md.",
    ),
    key(
        "permissions.approve_own",
        KeyKind::Flag(false),
        "Let callers with the role `approver` decide about their own calls.",
    ),
    key(
        "permissions.ask_timeout",
        seconds(300.0, 24.0 * 3600.0),
        "How long an approver may take to decide about a call that needs consent.",
    ),
    key(
        "permissions.ask.of",
        one_of(&["approver", "caller"], "approver"),
        "Who is asked where a role or policy needs consent: callers with the role `approver`, or the user of the calling client, by elicitation. `@of` of a policy says otherwise.",
    ),
    key(
        "permissions.ask.without_elicitation",
        one_of(&["deny", "approver"], "deny"),
        "What happens where the caller is to be asked and its client cannot ask: the call is denied, or approvers are asked.",
    ),
    key(
        "permissions.ask.webhook",
        KeyKind::Text(""),
        "An address, such as one of a chat, that is told of each call about which approvers are asked, with a link to the page on which they decide.",
    ),
    key(
        "permissions.ask.webhook_token_env",
        KeyKind::Text(""),
        "The variable with a token that this address is shown, as `Authorization: Bearer TOKEN`.",
    ),
    key(
        "permissions.ask.public_url",
        KeyKind::Text(""),
        "The address under which browsers reach the gateway, for those links. By default `auth.outbound.public_url`, or the address that it listens at.",
    ),
    key(
        "permissions.break_glass.allowed",
        KeyKind::Flag(false),
        "Whether `signalbox grant break-glass` works: for a while one caller may use everything but what is switched off.",
    ),
    key("permissions.break_glass.longest", seconds(3600.0, 24.0 * 3600.0), "For how long at most."),
    key(
        "permissions.break_glass.webhook",
        KeyKind::Text(""),
        "An address that is told when a caller breaks the glass, and when that ends.",
    ),
    key(
        "permissions.decision_point.url",
        KeyKind::Text(""),
        "A service that is asked about every use of `entries` that roles and policies allow.",
    ),
    key(
        "permissions.decision_point.api",
        one_of(&["authzen", "opa"], "authzen"),
        "How it is asked: by the AuthZEN Authorization API, or by the data API of the Open Policy Agent.",
    ),
    key("permissions.decision_point.timeout", seconds(2.0, 60.0), "How long it may take to answer."),
    key(
        "permissions.decision_point.cache",
        KeyKind::Seconds { default: None, max: 24.0 * 3600.0 },
        "How long its answer counts for the same caller, address, entry and arguments. By default it is asked each time.",
    ),
    key(
        "permissions.decision_point.when_down",
        one_of(&["deny", "allow"], "deny"),
        "What is decided while it does not answer.",
    ),
    key(
        "permissions.decision_point.entries",
        KeyKind::Texts,
        "What it is asked about, as patterns `BACKEND` or `BACKEND/NAME`; by default everything.",
    ),
    key(
        "roles.NAME.permissions",
        KeyKind::Texts,
        "What the role NAME may do: `*`, `tools.read`, `tools.execute` (which includes reading), and permissions that `tools.NAME.permissions` asks for. By default `tools.execute`.",
    ),
    key(
        "roles.NAME.allow",
        KeyKind::Texts,
        "The tools, prompts and resources that it is for, as patterns `BACKEND` or `BACKEND/NAME`. By default all.",
    ),
    key("roles.NAME.deny", KeyKind::Texts, "Those that its holders may not use, whatever their other roles allow."),
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
        "Regular expressions: what looks like this is taken out of answers before callers get them.",
    ),
    key("constraints.NAME.redact_members", KeyKind::Texts, "Names of members of answers whose values are taken out."),
    key(
        "limits.NAME.max_concurrent",
        count(0, 0, 1_000_000),
        "How many calls of a tool may run at once. NAME is a pattern `BACKEND` or `BACKEND/NAME`; where several fit, the strictest bound holds. 0 is any number.",
    ),
    key(
        "limits.NAME.max_result",
        count(0, 0, 1 << 40),
        "How many bytes an answer of the tool may have; 0 is any number.",
    ),
    key(
        "limits.NAME.max_repeats",
        count(0, 0, 1_000_000),
        "How often a caller may make the same call in a row, with the same arguments; 0 is any number.",
    ),
    key(
        "limits.NAME.calls_per_minute",
        count(0, 0, 1 << 40),
        "How many calls of the tool a caller may make in a minute, in place of `mcp.protocol.rate_limits.user_tool_requests_per_minute`; it may be more. 0 leaves that as it is.",
    ),
    key(
        "limits.NAME.calls_per_day",
        count(0, 0, 1 << 40),
        "How many calls of the tool a caller may make in a day (UTC); 0 is any number.",
    ),
    key(
        "limits.NAME.timeout",
        KeyKind::Seconds { default: None, max: 24.0 * 3600.0 },
        "How long a call of the tool may take, instead of what `backends.NAME.timeout` says; where several patterns fit, the shortest.",
    ),
    key(
        "limits.NAME.price",
        count(0, 0, 1 << 40),
        "What a call costs, in units of `mcp.protocol.rate_limits.user_budget_per_day`.",
    ),
    key(
        "mcp.protocol.rate_limits.user_budget_per_day",
        count(0, 0, 1 << 40),
        "What each caller may spend in a day (UTC) on tools that have a price; 0 is any amount.",
    ),
];
