//! Filter and signature for questions of a backend to a client.
//!
//! The client sees one server, the gateway, so a question must not look like the gateway's own. [`Asker::sign`] adds
//! the backend's name to `_meta`, and before the text for the user if several backends are configured. It must never be
//! applied to questions of the gateway itself (consent, sign-in).

use crate::bridge::capabilities;
use crate::bridge::object::{Object, is_object};
use crate::fault::{Fault, FaultKind};
use crate::notice_origin::OWN_META;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, RawId, Span, builder, codes, json, meta, method, printable};

/// Maximum length of a backend's text quoted in a message.
const MAX_QUOTED: usize = 80;

/// Returns true if a server may ask its client by this method. Every other request of a backend is refused.
#[must_use]
pub fn is_question(method: &str) -> bool {
    matches!(method, method::SAMPLING_CREATE_MESSAGE | method::ELICITATION_CREATE | method::ROOTS_LIST)
}

/// Returns true if a question needs a running call of the client. Servers of the old era ask for roots right after the
/// handshake.
#[must_use]
pub fn needs_call(method: &str) -> bool {
    method != method::ROOTS_LIST
}

/// Question that no client may be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnaskableQuestion {
    /// The method asks a client nothing.
    #[error("`{0}` is not a question that a server may ask a client")]
    Method(String),
    /// The user would be sent to something other than a web page.
    #[error("a user is only sent to http and https URLs, not to `{0}`")]
    Url(String),
    /// The question has no `url` although its mode is `url`.
    #[error("an elicitation by URL needs the string `url`")]
    NoUrl,
    /// JSON readers would disagree on the content of the question.
    #[error("the question names `{0}` twice")]
    Twice(&'static str),
    /// The question does not have the form that the protocol requires.
    #[error("the question is not an object with a method and params")]
    Shape,
    /// The client did not declare the capability that the question needs.
    #[error("`{method}` needs a client with the capability {required}")]
    Undeclared {
        /// Method of the question.
        method: String,
        /// Capabilities that it needs, as in `requiredCapabilities` of error -32021.
        required: String,
    },
}

impl UnaskableQuestion {
    /// Returns the refusal for the backend that sent this as a request.
    #[must_use]
    pub fn refusal(&self) -> Fault {
        let kind = match self {
            Self::Method(_) | Self::Undeclared { .. } => FaultKind::MethodNotFound,
            _ => FaultKind::InvalidParams,
        };
        Fault::new(kind, self.to_string())
    }

    /// Returns the fault that ends a call whose answer contains this question.
    #[must_use]
    pub fn fault(&self, backend: &str) -> Fault {
        let fault = match self {
            Self::Undeclared { method, required } => {
                let text = format!(
                    "backend `{backend}` asks `{method}`, for which the client did not declare the capability {required}"
                );
                Fault::new(FaultKind::MissingCapability, text).with_raw("requiredCapabilities", required.clone())
            }
            _ => {
                let text = format!("backend `{backend}` asks what no client may be asked: {self}");
                Fault::new(FaultKind::BackendGarbage, text)
            }
        };
        fault.with_str("backend", backend)
    }

    /// Returns the refusal as the bytes of an answer.
    pub(crate) fn reply(&self, id: &RawId) -> Bytes {
        let code = match self {
            Self::Method(_) | Self::Undeclared { .. } => codes::METHOD_NOT_FOUND,
            _ => codes::INVALID_PARAMS,
        };
        builder::error(Some(id), code, &self.to_string(), None)
    }
}

/// Checks a question against the rules that hold for every backend and client.
///
/// # Errors
/// Returns the reason why the client may not be asked this.
pub fn check(method: &str, params: &[u8]) -> Result<(), UnaskableQuestion> {
    if !is_question(method) {
        return Err(UnaskableQuestion::Method(quote(method)));
    }
    if method == method::ELICITATION_CREATE { check_mode(params).and_then(|()| check_url(params)) } else { Ok(()) }
}

/// Checks the mode. It must be one of the protocol, because clients handle unknown modes in different ways.
fn check_mode(params: &[u8]) -> Result<(), UnaskableQuestion> {
    let mut modes = json::members(params).filter(|member| json::key_eq(member.key.of(params), "mode"));
    let known = |mode: &[u8]| ["form", "url"].iter().any(|one| json::key_eq(mode, one));
    match (modes.next(), modes.next()) {
        (None, _) => Ok(()),
        (Some(mode), None) if known(mode.value.of(params)) => Ok(()),
        (Some(_), None) => Err(UnaskableQuestion::Shape),
        (Some(_), Some(_)) => Err(UnaskableQuestion::Twice("mode")),
    }
}

/// Checks every `url`, in any mode: a client may prefer the last of several.
fn check_url(params: &[u8]) -> Result<(), UnaskableQuestion> {
    let mut found = false;
    for member in json::members(params).filter(|member| json::key_eq(member.key.of(params), "url")) {
        let url = json::string(member.value.of(params)).ok_or(UnaskableQuestion::NoUrl)?;
        if !is_web_address(&url) {
            return Err(UnaskableQuestion::Url(quote(&url)));
        }
        if std::mem::replace(&mut found, true) {
            return Err(UnaskableQuestion::Twice("url"));
        }
    }
    if capabilities::by_url(params) && !found { Err(UnaskableQuestion::NoUrl) } else { Ok(()) }
}

/// Returns true for the address of a web page. Browsers skip control characters and blanks in a URL, so none may stand
/// before, in or after the scheme.
fn is_web_address(url: &str) -> bool {
    let scheme = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    (scheme("http://") || scheme("https://"))
        && !host.is_empty()
        && !host.starts_with(['/', '\\', '?', '#'])
        && !url.chars().any(|one| one.is_control() || one.is_whitespace())
}

fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTED).flat_map(char::escape_debug).collect()
}

/// Backend that asks a question.
#[derive(Copy, Clone, Debug)]
pub struct Asker<'a> {
    /// Configured name of the backend.
    pub backend: &'a str,
    /// True if other backends are configured too, so that the user has to be told which one asks.
    pub several: bool,
    /// Client whose capabilities limit the questions; `None` if they are checked elsewhere.
    pub client: Option<&'a ClientProfile>,
}

impl<'a> Asker<'a> {
    /// Limits the questions to those that this client declared.
    #[must_use]
    pub fn of_client(self, client: &'a ClientProfile) -> Self {
        Self { client: Some(client), ..self }
    }

    fn check_declared(&self, method: &str, params: &[u8]) -> Result<(), UnaskableQuestion> {
        match self.client {
            Some(client) if !capabilities::allows(client.modern_capabilities(false).as_bytes(), method, params) => {
                let required = capabilities::required(method, params);
                Err(UnaskableQuestion::Undeclared { method: method.to_owned(), required })
            }
            _ => Ok(()),
        }
    }

    /// Returns the params of a question as the client gets them: with the backend's name, and without a request for the
    /// context of other servers.
    ///
    /// # Errors
    /// Returns the reason why the client may not be asked this.
    pub fn sign(&self, method: &str, params: &[u8]) -> Result<Bytes, UnaskableQuestion> {
        check(method, params)?;
        self.check_declared(method, params)?;
        let base = match params {
            b"" | b"null" => Bytes::from_static(b"{}"),
            _ if is_object(params) => Bytes::copy_from_slice(params),
            _ => return Err(UnaskableQuestion::Shape),
        };
        let mut edits = Edits::new();
        let mut own_meta = None;
        let by_url = capabilities::by_url(params);
        for member in json::members(&base) {
            let (key, value) = (member.key.of(&base), member.value.of(&base));
            if json::key_eq(key, meta::META) {
                if own_meta.replace(member.value).is_some() {
                    return Err(UnaskableQuestion::Twice(meta::META));
                }
            } else if self.several && method == method::ELICITATION_CREATE && json::key_eq(key, "message") {
                // A carriage return or a directional mark could put other words before the name.
                let text = printable::lines(&json::string(value).unwrap_or_default());
                edits.replace(member.value, json::quote(&format!("[{}] {text}", self.backend)));
            } else if method == method::SAMPLING_CREATE_MESSAGE
                && json::key_eq(key, "includeContext")
                && !["thisServer", "none"].iter().any(|known| json::key_eq(value, known))
            {
                edits.replace(member.value, "\"thisServer\"");
            } else if method == method::ELICITATION_CREATE && !by_url && json::key_eq(key, "url") {
                // A form has no address; a client might open it all the same, though it declared only forms.
                edits.remove_member(&base, Span::new(0, base.len()), "url");
            }
        }
        self.name_in_meta(&base, own_meta, &mut edits)?;
        Ok(edits.apply(&base))
    }

    fn name_in_meta(&self, base: &Bytes, own: Option<Span>, edits: &mut Edits) -> Result<(), UnaskableQuestion> {
        let name = json::quote(self.backend);
        match own.filter(|own| is_object(own.of(base))) {
            Some(own) => {
                let object = own.of(base);
                let named = json::members(object).filter(|one| json::key_eq(one.key.of(object), meta::BACKEND));
                if named.count() > 1 {
                    return Err(UnaskableQuestion::Twice(meta::BACKEND));
                }
                for key in json::members(object).filter_map(|one| json::string(one.key.of(object))) {
                    let prefix = key.get(..OWN_META.len()).unwrap_or_default();
                    if prefix.eq_ignore_ascii_case(OWN_META) && key != meta::BACKEND {
                        edits.remove_member(base, own, &key);
                    }
                }
                edits.set_member(base, own, meta::BACKEND, name.as_bytes());
            }
            None => {
                let object = Object::new().raw(meta::BACKEND, name).finish();
                match own {
                    Some(own) => edits.replace(own, object),
                    None => edits.set_member(base, Span::new(0, base.len()), meta::META, &object),
                }
            }
        }
        Ok(())
    }

    /// Signs a backend's request for the client.
    ///
    /// # Errors
    /// Returns the reason why the client may not be asked this.
    pub fn sign_request(&self, message: &Envelope) -> Result<Envelope, UnaskableQuestion> {
        let name = message.method().unwrap_or_default();
        let params = self.sign(name, message.params().unwrap_or(b"{}"))?;
        let mut edits = Edits::new();
        match message.params_span() {
            Some(span) => edits.replace(span, params),
            None => edits.set_member(message.bytes(), Span::new(0, message.bytes().len()), "params", &params),
        }
        Envelope::parse(edits.apply(message.bytes())).map_err(|_| UnaskableQuestion::Shape)
    }

    /// Signs an `inputRequests` object for the client.
    ///
    /// # Errors
    /// Returns the reason why the client may not be asked one of its questions.
    pub fn sign_all(&self, requests: &[u8]) -> Result<Bytes, UnaskableQuestion> {
        let base = Bytes::copy_from_slice(requests);
        let mut edits = Edits::new();
        for member in json::members(&base) {
            let request = member.value.of(&base);
            let only = |key: &'static str| {
                let mut all = json::members(request).filter(|one| json::key_eq(one.key.of(request), key));
                match (all.next(), all.next()) {
                    (one, None) => Ok(one.map(|one| one.value)),
                    _ => Err(UnaskableQuestion::Twice(key)),
                }
            };
            let name = only("method")?.and_then(|span| json::string(span.of(request)));
            let params = only("params")?;
            let name = name.ok_or(UnaskableQuestion::Shape)?;
            let signed = self.sign(&name, params.map_or(&b"{}"[..], |span| span.of(request)))?;
            match params {
                Some(span) => edits.replace(span.shift(member.value.start), signed),
                None => edits.set_member(&base, member.value, "params", &signed),
            }
        }
        Ok(edits.apply(&base))
    }

    /// Signs every `inputRequests` of an object that lies at `whole` in `base`.
    ///
    /// # Errors
    /// Returns the reason why the client may not be asked one of its questions.
    pub(crate) fn sign_within(&self, base: &[u8], whole: Span, edits: &mut Edits) -> Result<(), UnaskableQuestion> {
        let object = whole.of(base);
        for member in json::members(object).filter(|one| json::key_eq(one.key.of(object), "inputRequests")) {
            edits.replace(member.value.shift(whole.start), self.sign_all(member.value.of(object))?);
        }
        Ok(())
    }

    /// Signs the elicitations of the error by which a server of 2025-11-25 sends the user to a URL first.
    ///
    /// # Errors
    /// Returns the reason why the client may not be asked one of them.
    pub(crate) fn sign_error(&self, message: &Envelope, edits: &mut Edits) -> Result<(), UnaskableQuestion> {
        let Some(error) = message.error_span() else { return Ok(()) };
        let object = error.of(message.bytes());
        let is_code = |span: Span| span.of(object) == codes::URL_ELICITATION_REQUIRED.to_string().as_bytes();
        if !json::member(object, "code").is_some_and(is_code) {
            return Ok(());
        }
        let Some(list) = json::path(object, &["data", "elicitations"]) else { return Ok(()) };
        for one in json::elements(list.of(object)) {
            let one = one.shift(error.start + list.start);
            edits.replace(one, self.sign(method::ELICITATION_CREATE, one.of(message.bytes()))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELICIT: &str = method::ELICITATION_CREATE;
    const SAMPLE: &str = method::SAMPLING_CREATE_MESSAGE;

    fn signed(several: bool, method: &str, params: &str) -> Result<String, UnaskableQuestion> {
        let asker = Asker { backend: "files", several, client: None };
        asker.sign(method, params.as_bytes()).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn a_question_names_its_backend_and_keeps_the_rest() {
        assert_eq!(
            signed(false, ELICIT, r#"{"message":"?","requestedSchema":{}}"#).unwrap(),
            r#"{"message":"?","requestedSchema":{},"_meta":{"io.signalbox/backend":"files"}}"#
        );
        assert_eq!(
            signed(true, ELICIT, r#"{"message":"a \"b\"","_meta":{"x":1}}"#).unwrap(),
            r#"{"message":"[files] a \"b\"","_meta":{"x":1,"io.signalbox/backend":"files"}}"#
        );
        assert_eq!(
            signed(true, ELICIT, r#"{"_meta":{"io.signalbox/backend":"signalbox"}}"#).unwrap(),
            r#"{"_meta":{"io.signalbox/backend":"files"}}"#
        );
        assert_eq!(signed(true, "roots/list", "").unwrap(), r#"{"_meta":{"io.signalbox/backend":"files"}}"#);
        assert_eq!(
            signed(false, ELICIT, r#"{"_meta":{"io.signalbox/backend":"a","io.signalbox/backend":"b"}}"#),
            Err(UnaskableQuestion::Twice(meta::BACKEND))
        );
    }

    /// Odd shapes by which a client would be asked what it did not declare, or by another name.
    #[test]
    fn odd_modes_marks_and_names_of_the_gateway_do_not_pass() {
        for mode in [r#"["url"]"#, r#""URL""#, r#""weird""#, "1", "null"] {
            let params = format!(r#"{{"mode":{mode},"message":"?","url":"https://a"}}"#);
            assert_eq!(signed(true, ELICIT, &params), Err(UnaskableQuestion::Shape), "{params}");
        }
        for mode in ["", r#""mode":"form","#] {
            let form = signed(false, ELICIT, &format!(r#"{{{mode}"message":"?","url":"https://a"}}"#)).unwrap();
            assert!(!form.contains("https"), "{form}");
        }
        let own = r#"{"_meta":{"io.signalbox/consent":1,"IO.signalbox/backend":"b","x":1}}"#;
        assert_eq!(signed(true, ELICIT, own).unwrap(), r#"{"_meta":{"x":1,"io.signalbox/backend":"files"}}"#);
        let marks = signed(true, ELICIT, "{\"message\":\"\\r[signalbox] \\u202eyes\"}").unwrap();
        let message =
            json::member(marks.as_bytes(), "message").and_then(|span| json::string(span.of(marks.as_bytes())));
        let message = message.unwrap();
        assert!(message.starts_with("[files] ") && !message.contains(['\r', '\u{202e}']), "{marks}");
        let context = signed(true, SAMPLE, r#"{"includeContext":["allServers"]}"#).unwrap();
        assert!(context.starts_with(r#"{"includeContext":"thisServer""#), "{context}");
    }

    #[test]
    fn the_context_of_other_servers_is_not_asked_for() {
        for (wish, asked) in [("allServers", "thisServer"), ("thisServer", "thisServer"), ("none", "none")] {
            let params = signed(true, SAMPLE, &format!(r#"{{"includeContext":"{wish}"}}"#)).unwrap();
            assert!(params.starts_with(&format!(r#"{{"includeContext":"{asked}""#)), "{params}");
        }
        let escaped = signed(true, SAMPLE, r#"{"includeContext":"\u0061llServers"}"#).unwrap();
        assert!(escaped.contains("thisServer"), "{escaped}");
    }

    #[test]
    fn a_user_is_sent_to_web_pages_only() {
        let rows = [
            ("https://a/", true),
            ("HTTP://a", true),
            ("http:///x", false),
            ("https://", false),
            ("javascript:alert(1)", false),
            (" https://a/", false),
            ("\thttps://a/", false),
            ("java\nscript:alert(1)", false),
            ("data:text/html,x", false),
            ("file:///etc/passwd", false),
            ("https:a", false),
            ("vscode://x", false),
            ("", false),
        ];
        for (url, allowed) in rows {
            for mode in ["url", "form"] {
                let params = format!(r#"{{"mode":"{mode}","message":"?","url":{}}}"#, json::quote(url));
                assert_eq!(signed(false, ELICIT, &params).is_ok(), allowed, "{params}");
            }
        }
        assert_eq!(signed(false, ELICIT, r#"{"mode":"url"}"#), Err(UnaskableQuestion::NoUrl));
        assert!(signed(false, ELICIT, r#"{"url":"https://a","url":"javascript:0"}"#).is_err());
    }

    #[test]
    fn only_questions_are_asked_in_either_form() {
        let asker = Asker { backend: "files", several: false, client: None };
        for name in ["tools/call", "initialize", "foo/bar", "ping", "notifications/message", ""] {
            assert!(matches!(asker.sign(name, b"{}"), Err(UnaskableQuestion::Method(_))), "{name}");
            let entry = format!(r#"{{"q":{{"method":"{name}"}}}}"#);
            assert!(asker.sign_all(entry.as_bytes()).is_err(), "{name}");
        }
        let signed =
            asker.sign_all(br#"{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}}"#);
        assert_eq!(
            signed.unwrap(),
            r#"{"a":{"method":"roots/list","params":{"_meta":{"io.signalbox/backend":"files"}}},"b":{"method":"elicitation/create","params":{"_meta":{"io.signalbox/backend":"files"}}}}"#
        );
        for odd in [r#"{"a":{}}"#, r#"{"a":1}"#, r#"{"a":{"method":"roots/list","method":"foo"}}"#] {
            assert!(asker.sign_all(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
