//! Shows held calls to approvers. A webhook receives one sentence with a link, and the page behind the link shows the
//! same details.
//!
//! Of the arguments only a bounded beginning is shown, after the configured redaction has removed secrets.

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde_json::json;
use signalbox_config::listen::Transport;
use signalbox_config::{AskRule, Config};
use signalbox_govern::permissions::ApprovalLinks;
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{HeldMessage, HoldNotice, HoldNotices};
use signalbox_tape::redact::{Redaction, Redactor};
use signalbox_wire::{Envelope, printable, timestamp};
use std::time::Instant;

/// Path prefix of the approval pages.
pub const APPROVE: &str = "/approve";
/// Maximum number of characters shown of the arguments.
const MAX_ARGUMENTS: usize = 2_000;
/// Maximum number of characters shown of a name or a reason.
const MAX_TEXT: usize = 500;
/// Placeholder for arguments that cannot be shown.
const WITHHELD: &str = "(withheld)";

/// Details of a held call for approvers. All texts are bounded, and each is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCall {
    /// Principal of the caller.
    pub principal: String,
    /// Tool, prompt or resource, as `BACKEND/NAME`.
    pub subject: String,
    /// Redacted beginning of the arguments, or empty if there are none.
    pub arguments: String,
    /// Role or policy that demands consent.
    pub policy: String,
    /// Reason given by the role or policy.
    pub reason: String,
    /// Deadline for the decision, as an RFC 3339 date.
    pub expires: String,
}

/// Notifies approvers of calls that need consent.
pub struct ApprovalNotifier {
    /// Signed links to the approval pages.
    pub links: ApprovalLinks,
    rules: ArcSwap<(AskRule, Option<String>)>,
    redactor: Redactor,
}

impl ApprovalNotifier {
    /// Signs links with `key`, so they become invalid when the process ends.
    #[must_use]
    pub fn new(config: &Config, redactor: Redactor, key: [u8; 32]) -> Self {
        Self { links: ApprovalLinks::new(key), rules: ArcSwap::from_pointee(rules(config)), redactor }
    }

    /// Replaces the rules by those of another configuration.
    pub fn follow(&self, config: &Config) {
        self.rules.store(rules(config).into());
    }

    /// Returns the details of a held call for approvers.
    #[must_use]
    pub fn shown(&self, held: &HeldMessage) -> ShownCall {
        let call = &held.held;
        let short = |text: &str| printable::beginning(text, MAX_TEXT);
        let name = call.own_name.as_deref().or(call.subject.as_deref()).unwrap_or(&call.method);
        let subject = match &call.backend {
            Some(backend) => format!("{backend}/{name}"),
            None => name.to_owned(),
        };
        let left = held.until.saturating_duration_since(Instant::now());
        let expires = unix_millis().saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let policy = held.consent.as_ref().and_then(|consent| consent.policy.as_deref());
        ShownCall {
            principal: short(call.caller.principal().as_str()),
            subject: short(&subject),
            arguments: self.arguments(&call.message, &call.method),
            policy: short(policy.unwrap_or_default()),
            reason: short(&held.reason),
            expires: timestamp::rfc3339_millis(expires),
        }
    }

    fn arguments(&self, message: &Bytes, method: &str) -> String {
        let kept = match self.redactor.message(message, Some(method)) {
            Redaction::Same => message.clone(),
            Redaction::Changed(bytes) => bytes,
            Redaction::Withheld => return WITHHELD.to_owned(),
        };
        let Ok(message) = Envelope::parse(kept) else { return WITHHELD.to_owned() };
        let arguments = message.param("arguments").map(|span| span.of(message.bytes())).unwrap_or_default();
        printable::beginning(&String::from_utf8_lossy(arguments), MAX_ARGUMENTS)
    }
}

impl HoldNotices for ApprovalNotifier {
    fn notice(&self, held: &HeldMessage) -> Option<HoldNotice> {
        let rules = self.rules.load();
        let (ask, base) = &**rules;
        let url = ask.webhook.as_deref()?.into();
        let shown = self.shown(held);
        let link = base.as_ref().map(|base| format!("{base}{APPROVE}/{}", self.links.link(held.id)));
        let how = link.clone().unwrap_or_else(|| format!("`signalbox hold show {}`", held.id));
        let text = format!(
            "`{}` wants to use `{}`, which needs consent: {}. Decide until {}: {how}",
            plain(&shown.principal),
            plain(&shown.subject),
            plain(&shown.reason),
            shown.expires
        );
        let body = json!({
            "text": text,
            "link": link,
            "hold": held.id,
            "principal": shown.principal,
            "subject": shown.subject,
            "arguments": shown.arguments,
            "policy": shown.policy,
            "reason": shown.reason,
            "expires": shown.expires,
        });
        let bearer = ask.webhook_token.as_ref().map(|token| token.expose().into());
        Some(HoldNotice { url, body: Bytes::from(body.to_string()), bearer })
    }
}

/// Replaces characters that a chat would read as a link, a mention or the end of a quotation.
fn plain(text: &str) -> String {
    let replaced = |char| match char {
        '<' => '‹',
        '>' => '›',
        '`' => '\'',
        other => other,
    };
    text.chars().map(replaced).collect()
}

/// Returns the rules for asking approvers and the base URL of the gateway, if it serves pages.
fn rules(config: &Config) -> (AskRule, Option<String>) {
    let ask = config.permissions.ask.clone();
    let listen = &config.listen;
    let own = (listen.transport != Transport::Tcp && listen.port != 0).then(|| {
        let scheme = if listen.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", std::net::SocketAddr::new(listen.host, listen.port))
    });
    let outbound = config.outbound.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
    let base = ask.public_url.clone().or(outbound).or(own);
    (ask, base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::Overrides;
    use signalbox_engine::chain::{Consent, ConsentOf, Phase};
    use signalbox_engine::command::MessageOnHold;
    use signalbox_engine::{Caller, ExchangeId, SessionKey};
    use signalbox_tape::redact::RedactionSettings;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    fn held(arguments: &str) -> HeldMessage {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
        );
        let consent = Consent {
            reason: "it <writes>".into(),
            policy: Some("role:writer".into()),
            within: Duration::from_secs(60),
            of: ConsentOf::Approver,
        };
        HeldMessage {
            id: 7,
            session: String::new(),
            session_key: SessionKey(1),
            exchange: ExchangeId(1),
            reason: Arc::clone(&consent.reason),
            consent: Some(Arc::new(consent)),
            until: Instant::now() + Duration::from_secs(60),
            held: Arc::new(MessageOnHold {
                phase: Phase::Request,
                method: "tools/call".into(),
                subject: Some("write".into()),
                own_name: Some("wr`ite".into()),
                backend: Some("files".into()),
                caller: Caller::anonymous("http"),
                since: Instant::now(),
                message: message.into(),
                gives_progress: false,
            }),
        }
    }

    fn notifier(text: &str) -> ApprovalNotifier {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "CHAT_TOKEN" => Some("t0ken".to_owned()),
            _ => None,
        };
        let config = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default()).unwrap().config;
        ApprovalNotifier::new(&config, Redactor::new(&RedactionSettings::default(), [0; 32]).unwrap(), [1; 32])
    }

    #[test]
    fn a_chat_is_told_who_wants_what_with_a_link_and_no_secret() {
        let notifier = notifier(
            "[permissions.ask]\nwebhook = 'https://chat.example/1'\nwebhook_token_env = 'CHAT_TOKEN'\n\
             public_url = 'https://mcp.example'\n",
        );
        let long = "x".repeat(10_000);
        let held = held(&format!(r#"{{"password":"hunter2-hunter2","text":"{long}"}}"#));
        let notice = notifier.notice(&held).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&notice.body).unwrap();
        let link = format!("https://mcp.example/approve/{}", notifier.links.link(7));
        assert_eq!((&*notice.url, &body["link"]), ("https://chat.example/1", &json!(link)));
        assert_eq!(notice.bearer.as_deref(), Some("t0ken"));
        let text = body["text"].as_str().unwrap();
        assert!(text.contains("`files/wr'ite`") && text.contains("it ‹writes›") && text.ends_with(&link), "{text}");
        assert_eq!(body["policy"], "role:writer");
        let arguments = body["arguments"].as_str().unwrap();
        assert!(!arguments.contains("hunter2") && arguments.chars().count() <= MAX_ARGUMENTS + 1, "{arguments}");
    }

    #[test]
    fn nobody_is_told_without_an_address() {
        assert!(notifier("").notice(&held("{}")).is_none());
    }
}
