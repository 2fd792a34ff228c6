//! Refuses forms that ask a person for a password or a key.

use crate::filter_settings::FilterAction;
use crate::guard::{GuardState, ruling};
use serde_json::Value;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Rulings, Verdict};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{json, method};
use std::sync::Arc;

/// Longest question that is read, in bytes. A longer one counts as a form that hides something.
const MAX_QUESTION: usize = 256 * 1024;

/// Words that name a secret, in lower case without separators.
const SECRETS: [&str; 28] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "authcode",
    "bearertoken",
    "cardnumber",
    "clientsecret",
    "credential",
    "creditcard",
    "cvv",
    "masterkey",
    "mnemonic",
    "onetimecode",
    "onetimepassword",
    "otpcode",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "personalaccesstoken",
    "privatekey",
    "recoverycode",
    "recoveryphrase",
    "secretkey",
    "seedphrase",
    "sshkey",
];

/// Interceptor that looks at questions of servers.
pub(crate) struct QuestionCheck(pub Arc<GuardState>);

/// Returns a text in lower case without what separates words. Letters that look alike count as the same.
fn letters(text: &str) -> String {
    let folded = crate::instructions::fold_look_alikes(text);
    let text = folded.as_deref().unwrap_or(text);
    text.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the word for a secret that a text names.
fn secret_in(text: &str) -> Option<&'static str> {
    let letters = letters(text);
    SECRETS.into_iter().find(|secret| letters.contains(secret))
}

/// Returns the secret that a form asks for.
fn secret_of_form(params: &Value) -> Option<&'static str> {
    let properties = params["requestedSchema"]["properties"].as_object()?;
    let of_field = |(name, field): (&String, &Value)| {
        let is_marked = field["format"] == "password" || field["writeOnly"] == true;
        let texts = [Some(name.as_str()), field["title"].as_str(), field["description"].as_str()];
        texts.into_iter().flatten().find_map(secret_in).or(is_marked.then_some("password"))
    };
    // A field called `value` may hold what the message asks for. A choice or a flag holds no secret.
    let has_text = properties.values().any(|field| field["type"] == "string" && !field["enum"].is_array());
    let of_message = || params["message"].as_str().filter(|_| has_text).and_then(secret_in);
    properties.iter().find_map(of_field).or_else(of_message)
}

/// Returns the secret that a question of a server asks for, if it is a form.
fn secret_of(question: &Value) -> Option<&'static str> {
    let is_form = question["method"] == method::ELICITATION_CREATE && question["params"]["mode"] != "url";
    secret_of_form(&question["params"]).filter(|_| is_form)
}

impl QuestionCheck {
    /// Returns the secret that the questions in a message ask for.
    fn secret(case: &Case<'_>) -> Option<&'static str> {
        let bytes = case.message.bytes();
        let part = match case.phase {
            Phase::ServerAsks if case.message.method() == Some(method::ELICITATION_CREATE) => &bytes[..],
            Phase::Response => case.message.result_member("inputRequests")?.of(bytes),
            _ => return None,
        };
        if part.len() > MAX_QUESTION {
            let asks = json::members(part).next().is_some();
            return asks.then_some("something in a form that is too long to be read");
        }
        let value: Value = serde_json::from_slice(part).ok()?;
        match case.phase {
            Phase::ServerAsks => secret_of(&value),
            _ => value.as_object()?.values().find_map(secret_of),
        }
    }
}

impl Interceptor for QuestionCheck {
    fn name(&self) -> &'static str {
        "guard questions"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(secret) = Self::secret(case) else { return Judgement::pass() };
        let applied = self.0.mode(case, |settings| settings.secret_forms, |_| None);
        let rulings =
            |word| Rulings::from(ruling(&applied.rule("secret_forms"), word, format!("a form asks for: {secret}")));
        let text = "the server asks for a password or a key in a form, which MCP forbids";
        let (verdict, word) = match applied.mode {
            FilterAction::Off => return Judgement::pass(),
            FilterAction::Block => (Verdict::Refuse(Fault::new(FaultKind::Refused, text)), "refuse"),
            _ => (Verdict::Pass, "report"),
        };
        Judgement { verdict, rulings: rulings(word), effects: Vec::new() }
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::ServerAsks | Phase::Response) && self.0.settings.load().secret_forms != FilterAction::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(message: &str, name: &str, field: &Value) -> Value {
        json!({"method": "elicitation/create", "params": {"message": message,
            "requestedSchema": {"type": "object", "properties": {name: field}}}})
    }

    /// Proves the row T32 of the threats for forms.
    #[test]
    fn forms_that_ask_for_secrets_are_told_from_others() {
        let text = json!({"type": "string"});
        for asks in [
            form("Sign in", "password", &text),
            form("Sign in", "pass_word", &text),
            form("Sign in", "API-Key", &text),
            form("Sign in", "x", &json!({"type": "string", "title": "Your GitHub access token"})),
            form("Sign in", "x", &json!({"type": "string", "format": "password"})),
            form("Sign in", "x", &json!({"type": "string", "description": "p\u{430}ssword"})),
            form("Please enter your recovery phrase", "value", &text),
        ] {
            assert!(secret_of(&asks).is_some(), "{asks}");
        }
        for other in [
            form("Which city?", "city", &text),
            form("Sort by which key?", "sort_key", &text),
            form("Reset the password of bob?", "confirm", &json!({"type": "boolean"})),
            form("Delete the API key `ci`?", "sure", &json!({"type": "string", "enum": ["yes", "no"]})),
            json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Enter your password there",
                "url": "https://login.example"}}),
            json!({"method": "sampling/createMessage", "params": {"message": "password"}}),
        ] {
            assert_eq!(secret_of(&other), None, "{other}");
        }
    }
}
