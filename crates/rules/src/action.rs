//! Actions of a rule.

use crate::facts::Root;
use crate::phases::Phases;
use crate::pointer::Pointer;
use crate::template::{Hole, JsonTemplate, Template};
use signalbox_engine::log_level::LogLevel;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    Allow,
    Block { message: Template, code: Option<i64> },
    Set(Vec<(MessageTarget, JsonTemplate)>),
    Remove(Vec<MessageTarget>),
    Replace(Root, JsonTemplate),
    Error { code: i64, message: Template, data: Option<JsonTemplate> },
    Delay { least: Duration, most: Duration },
    Fork { backend: Arc<str> },
    Log { level: LogLevel, text: Template },
    Webhook(Webhook),
    Hold { reason: Template, within: Duration, release: bool },
    Mock(Mock, Option<MockFile>),
    Fault(InjectedFault),
    RateLimit(RateLimit),
    Cache(Cache),
    Count { name: Arc<str> },
}

/// Place in a message to set or remove.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct MessageTarget {
    pub root: Root,
    pub pointer: Pointer,
}

/// Webhook that is notified of a message, or asked about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Webhook {
    pub url: Arc<str>,
    /// URL without user, password and query, which may be secret.
    pub shown: Arc<str>,
    pub timeout: Duration,
    pub wait: bool,
    /// Blocks the message if the webhook fails.
    pub block_on_failure: bool,
}

/// Source of mock results.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Mock {
    Always(JsonTemplate),
    /// Results in order, starting over at the end.
    InTurn(Vec<JsonTemplate>),
    AtRandom(Vec<JsonTemplate>, Option<u64>),
}

/// File that mock results were read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MockFile {
    /// Name as given in the rule.
    pub name: Arc<str>,
    /// Digest of the content. Makes it part of the rules' version.
    pub digest: u64,
    pub bytes: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct InjectedFault {
    pub kind: FailKind,
    pub probability: f64,
    pub seed: Option<u64>,
    /// Duration of a slow or lost call.
    pub after: Duration,
    /// Distribution of the durations of slow calls.
    pub spread: Spread,
}

/// Distribution of durations around their mean.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum Spread {
    #[default]
    Fixed,
    /// Uniform between zero and twice the mean.
    Uniform,
    /// Mostly short, with a few many times the mean.
    Exponential,
}

pub(crate) const SPREADS: [(&str, Spread); 3] =
    [("fixed", Spread::Fixed), ("uniform", Spread::Uniform), ("exponential", Spread::Exponential)];

/// Kind of an injected failure.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FailKind {
    Timeout,
    Refused,
    Unreachable,
    Dns,
    Tls,
    Reset,
    Crash,
    InvalidJson,
    Error,
    Slow,
    Truncate,
    Garble,
}

pub(crate) const FAIL_KINDS: [(&str, FailKind); 12] = [
    ("timeout", FailKind::Timeout),
    ("refused", FailKind::Refused),
    ("unreachable", FailKind::Unreachable),
    ("dns", FailKind::Dns),
    ("tls", FailKind::Tls),
    ("reset", FailKind::Reset),
    ("crash", FailKind::Crash),
    ("invalid_json", FailKind::InvalidJson),
    ("error", FailKind::Error),
    ("slow", FailKind::Slow),
    ("truncate", FailKind::Truncate),
    ("garble", FailKind::Garble),
];

/// Limit on the number of uses in a time window.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RateLimit {
    pub key: Template,
    pub limit: u64,
    pub per: Duration,
}

/// Cache of results, filled from answers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cache {
    pub key: Template,
    pub ttl: Duration,
    pub max_entries: usize,
    /// Set if principals share entries.
    pub shared: bool,
}

impl Action {
    /// Returns the action's key in a rule.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block { .. } => "block",
            Self::Set(_) => "set",
            Self::Remove(_) => "remove",
            Self::Replace(Root::Params, _) => "replace_params",
            Self::Replace(..) => "replace_result",
            Self::Error { .. } => "error",
            Self::Delay { .. } => "delay",
            Self::Fork { .. } => "fork",
            Self::Log { .. } => "log",
            Self::Webhook(_) => "webhook",
            Self::Hold { .. } => "hold",
            Self::Mock(..) => "mock",
            Self::Fault(_) => "fault",
            Self::RateLimit(_) => "rate_limit",
            Self::Cache(_) => "cache",
            Self::Count { .. } => "count",
        }
    }

    /// Returns the phases that the action applies to. It is skipped in others.
    pub fn fits(&self) -> Phases {
        let params = Phases::REQUEST.or(Phases::NOTIFICATIONS).or(Phases::QUESTION).or(Phases::TO_GATEWAY);
        let of = |root: Root| if root == Root::Params { params } else { Phases::RESULTS };
        match self {
            Self::Set(list) => list.iter().fold(Phases::NONE, |all, (target, _)| all.or(of(target.root))),
            Self::Remove(list) => list.iter().fold(Phases::NONE, |all, target| all.or(of(target.root))),
            Self::Replace(root, _) => of(*root),
            Self::Mock(..) => params.or(Phases::RESULTS).and(Phases::NOTIFICATIONS.others()),
            Self::Fork { .. } | Self::Cache(_) => Phases::REQUEST,
            Self::Delay { .. } | Self::Hold { .. } => params.or(Phases::RESULTS).and(Phases::NOTIFICATIONS.others()),
            Self::Fault(InjectedFault { kind: FailKind::Truncate | FailKind::Garble, .. }) => Phases::RESPONSE,
            Self::Fault(_) => Phases::REQUEST.or(Phases::RESPONSE),
            _ => Phases::EVERY,
        }
    }

    /// Returns `true` if no later action or rule can run.
    pub fn always_ends(&self) -> bool {
        matches!(self, Self::Allow | Self::Block { .. } | Self::Error { .. } | Self::Mock(..))
    }

    /// Returns the placeholders of its templates.
    pub fn holes(&self) -> Vec<&Hole> {
        match self {
            Self::Block { message, .. } => message.holes().collect(),
            Self::Error { message, data, .. } => {
                message.holes().chain(data.iter().flat_map(JsonTemplate::holes)).collect()
            }
            Self::Set(list) => list.iter().flat_map(|(_, value)| value.holes()).collect(),
            Self::Replace(_, value) => value.holes().collect(),
            Self::Log { text, .. } => text.holes().collect(),
            Self::Hold { reason, .. } => reason.holes().collect(),
            Self::Mock(Mock::Always(value), _) => value.holes().collect(),
            Self::Mock(Mock::InTurn(list) | Mock::AtRandom(list, _), _) => {
                list.iter().flat_map(JsonTemplate::holes).collect()
            }
            Self::RateLimit(limit) => limit.key.holes().collect(),
            Self::Cache(cache) => cache.key.holes().collect(),
            _ => vec![],
        }
    }
}

impl fmt::Display for MessageTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}{}", self.root.word(), self.pointer.as_str())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::Set(list) => {
                let targets: Vec<_> = list.iter().map(|(target, _)| target.to_string()).collect();
                write!(f, "set {}", targets.join(", "))
            }
            Self::Remove(list) => {
                let targets: Vec<_> = list.iter().map(MessageTarget::to_string).collect();
                write!(f, "remove {}", targets.join(", "))
            }
            Self::Error { code, .. } => write!(f, "error {code}"),
            Self::Delay { least, most } if least == most => write!(f, "delay {least:?}"),
            Self::Delay { least, most } => write!(f, "delay {least:?} to {most:?}"),
            Self::Fork { backend } => write!(f, "fork to {backend}"),
            Self::Log { level, .. } => write!(f, "log {}", level.as_str()),
            Self::Webhook(hook) if hook.wait => write!(f, "ask {}", hook.shown),
            Self::Webhook(hook) => write!(f, "tell {}", hook.shown),
            Self::Hold { within, .. } => write!(f, "hold {within:?}"),
            Self::Mock(_, Some(file)) => write!(f, "mock from {}", file.name),
            Self::Fault(failing) => {
                let kind = FAIL_KINDS.iter().find(|(_, kind)| *kind == failing.kind).map_or("", |(word, _)| word);
                write!(f, "fault {kind} {}%", failing.probability * 100.0)
            }
            Self::RateLimit(limit) => write!(f, "rate_limit {} per {:?}", limit.limit, limit.per),
            Self::Cache(cache) => write!(f, "cache {:?}", cache.ttl),
            Self::Count { name } => write!(f, "count {name}"),
            _ => f.write_str(word),
        }
    }
}
