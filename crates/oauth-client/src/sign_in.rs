//! Pending sign-ins: from the URL that a person opens to the response that the browser returns with.

use crate::client_identity::ClientIdentity;
use crate::discovery::DiscoveredServer;
use crate::error::{OauthError, plain};
use crate::form;
use crate::pkce;
use crate::web_address::WebAddress;
use signalbox_engine::bounded::make_room;
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Lifetime of a sign-in.
pub const SIGN_IN_TIME: Duration = Duration::from_secs(600);
/// Time after opening the URL during which a person counts as being in the browser.
const IN_BROWSER: Duration = Duration::from_secs(120);
/// Maximum number of browsers that may open one URL before a person confirms. The first one is never evicted.
const MAX_BROWSERS: usize = 8;
/// Maximum number of pending sign-ins. The oldest is evicted.
const MAX_SIGN_INS: usize = 256;

/// Holder of a token: a subject at a backend.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TokenHolder {
    pub backend: String,
    /// Principal, or `*` if all callers share one token.
    pub subject: String,
}

/// Sign-in that is in progress.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// Holder that the token will belong to.
    pub holder: TokenHolder,
    /// Identity of the gateway at the authorization server.
    pub client: ClientIdentity,
    /// Result of discovery. It fixes the issuer before the browser leaves.
    pub found: DiscoveredServer,
    pub scopes: Vec<String>,
    /// True if the provider accepts the parameter `resource`.
    pub takes_resource: bool,
    pub verifier: String,
    /// Random part of the URL that the person opens; valid once.
    pub ticket: String,
    /// Random `state` of the authorization request; valid once.
    state: String,
    /// Hashes of the cookies of all browsers that opened the URL. Once a person confirms in one of them, only that one
    /// is left.
    browsers: Vec<String>,
    opened: Option<Instant>,
    /// True once the browser has returned, while the code is exchanged.
    returned: bool,
    begun: Instant,
}

/// Reason why a returning browser cannot complete a sign-in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReturnError {
    /// No sign-in has this state, or it has expired.
    Unknown,
    /// The sign-in was begun in another browser, where it can still be completed.
    OtherBrowser,
}

impl SignIn {
    /// Begins a sign-in.
    ///
    /// # Errors
    /// If the server does not support PKCE with S256, or has no authorization endpoint.
    pub fn begin(
        holder: TokenHolder,
        client: ClientIdentity,
        found: DiscoveredServer,
        scopes: Vec<String>,
        takes_resource: bool,
    ) -> Result<Self, OauthError> {
        let methods = found.server.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            return Err(OauthError::BadMetadata("they do not say that it does PKCE by S256"));
        }
        let endpoint = found.server.authorization_endpoint.as_deref();
        if endpoint.and_then(WebAddress::read).is_none() {
            return Err(OauthError::BadMetadata("they name no address to sign in at"));
        }
        Ok(Self {
            holder,
            client,
            found,
            scopes,
            takes_resource,
            verifier: pkce::random()?,
            ticket: pkce::random()?,
            state: pkce::random()?,
            browsers: Vec::new(),
            opened: None,
            returned: false,
            begun: Instant::now(),
        })
    }

    /// Returns the URL of the authorization server to send the browser to.
    #[must_use]
    pub fn authorization_url(&self) -> String {
        let challenge = pkce::challenge(&self.verifier);
        let scope = self.scopes.join(" ");
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", self.client.id.as_str()),
            ("redirect_uri", &self.client.redirect_uri),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        if self.takes_resource {
            pairs.push(("resource", &self.found.resource));
        }
        form::extend(self.found.server.authorization_endpoint.as_deref().unwrap_or_default(), &pairs)
    }

    /// Returns the code that the browser brought, after all checks (RFC 9207).
    ///
    /// # Errors
    /// If the response is from another server, or declines.
    pub fn code(&self, query: &[(String, String)]) -> Result<String, OauthError> {
        // A repeated parameter is ambiguous.
        let names = ["code", "state", "iss", "error"];
        if names.iter().any(|name| query.iter().filter(|(own, _)| own == name).count() > 1) {
            return Err(OauthError::NotOurs);
        }
        let param = |name: &str| query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let advertised = self.found.server.authorization_response_iss_parameter_supported;
        match (param("iss"), advertised) {
            // RFC 9207 requires a byte for byte comparison, without normalization.
            (Some(issuer), _) if issuer != self.found.server.issuer => return Err(OauthError::NotOurs),
            (None, true) => return Err(OauthError::NotOurs),
            (Some(_), _) | (None, false) => {}
        }
        if let Some(error) = param("error") {
            return Err(OauthError::NotGranted(plain(error).unwrap_or("no reason given").to_owned()));
        }
        param("code").filter(|code| !code.is_empty()).map(str::to_owned).ok_or(OauthError::NotOurs)
    }

    /// Returns the cookie name of this sign-in. A name per sign-in lets a browser have several pending. The `__Host-`
    /// prefix requires TLS.
    fn cookie_name(&self, is_secure: bool) -> String {
        let prefix = if is_secure { "__Host-" } else { "" };
        let short: String = self.state.chars().take(8).collect();
        format!("{prefix}signalbox-connect-{short}")
    }

    /// Returns the hash of the cookie that binds one of its browsers, if these cookies contain it.
    fn browser(&self, cookies: &str, is_secure: bool) -> Option<String> {
        let name = self.cookie_name(is_secure);
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|(known, _)| *known == name).map(|(_, value)| pkce::challenge(value));
        // Hashes of random values are compared, so the timing reveals nothing about the value.
        value.filter(|value| self.browsers.contains(value))
    }

    /// Returns true if the URL can still be opened.
    fn is_waiting(&self) -> bool {
        self.opened.is_none() && !self.is_late()
    }

    fn may_return(&self) -> bool {
        !self.returned && !self.is_late()
    }

    fn is_late(&self) -> bool {
        self.begun.elapsed() >= SIGN_IN_TIME
    }
}

/// All pending sign-ins, by state.
#[derive(Default, Debug)]
pub struct SignIns(HashMap<String, SignIn>);

impl SignIns {
    /// Returns an unopened sign-in of this holder with the same scopes and issuer.
    #[must_use]
    pub fn waiting(&self, holder: &TokenHolder, scopes: &[String], issuer: &str) -> Option<&SignIn> {
        let fits = |one: &&SignIn| {
            one.holder == *holder && one.opened.is_none() && one.scopes == scopes && one.found.server.issuer == issuer
        };
        self.0.values().filter(|one| one.begun.elapsed() < SIGN_IN_TIME / 2).find(fits)
    }

    /// Stores a sign-in until the browser returns.
    pub fn add(&mut self, sign_in: SignIn) {
        self.0.retain(|_, one| !one.is_late());
        make_room(&mut self.0, MAX_SIGN_INS, |one| one.begun);
        self.0.insert(sign_in.state.clone(), sign_in);
    }

    /// Returns true if a sign-in was offered to this holder so long ago that a person may be about to open it.
    #[must_use]
    pub fn is_offered(&self, holder: &TokenHolder, since: &Range<Duration>) -> bool {
        let recent = |one: &SignIn| since.contains(&one.begun.elapsed());
        self.0.values().any(|one| one.holder == *holder && one.opened.is_none() && recent(one))
    }

    /// Returns true if this holder has a sign-in that can still be opened.
    #[must_use]
    pub fn is_unopened(&self, holder: &TokenHolder) -> bool {
        self.0.values().any(|one| one.holder == *holder && one.is_waiting())
    }

    /// Returns true if a person is in the browser for this holder.
    #[must_use]
    pub fn is_open(&self, holder: &TokenHolder) -> bool {
        self.0
            .values()
            .any(|one| one.holder == *holder && one.opened.is_some_and(|opened| opened.elapsed() < IN_BROWSER))
    }

    /// Returns the holder of a ticket.
    #[must_use]
    pub fn holder(&self, ticket: &str) -> Option<&TokenHolder> {
        self.0.values().find(|one| one.ticket == ticket && one.is_waiting()).map(|one| &one.holder)
    }

    /// Returns the holder of the sign-in with this state.
    #[must_use]
    pub fn returning(&self, state: &str) -> Option<&TokenHolder> {
        self.0.get(state).filter(|one| one.may_return()).map(|one| &one.holder)
    }

    /// Records a browser that opens the URL of a ticket, by a cookie with this secret. The sign-in goes to the first
    /// browser in which a person confirms: a link scanner may open the URL before, and another person after.
    pub fn bind(&mut self, ticket: &str, secret: &str, is_secure: bool) -> Option<(&SignIn, String)> {
        let one = self.0.values_mut().find(|one| one.ticket == ticket && one.is_waiting())?;
        if one.browsers.len() >= MAX_BROWSERS {
            one.browsers.remove(1);
        }
        one.browsers.push(pkce::challenge(secret));
        let (name, secure) = (one.cookie_name(is_secure), if is_secure { "; Secure" } else { "" });
        let seconds = SIGN_IN_TIME.as_secs();
        Some((&*one, format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")))
    }

    /// Binds the sign-in to the browser in which a person confirms, which must have opened the URL. Returns the URL to
    /// send it to. A ticket is valid once.
    pub fn open(&mut self, ticket: &str, cookies: &str, is_secure: bool) -> Option<String> {
        let one = self.0.values_mut().find(|one| one.ticket == ticket && one.is_waiting())?;
        one.browsers = vec![one.browser(cookies, is_secure)?];
        one.opened = Some(Instant::now());
        Some(one.authorization_url())
    }

    /// Takes the sign-in with this state. It succeeds once, and only in the browser that the sign-in is bound to.
    ///
    /// # Errors
    /// If there is none, or this is not its browser; the sign-in is then unchanged.
    pub fn take(&mut self, state: &str, cookies: &str, is_secure: bool) -> Result<SignIn, ReturnError> {
        let one = self.0.get_mut(state).filter(|one| one.may_return()).ok_or(ReturnError::Unknown)?;
        one.browser(cookies, is_secure).ok_or(ReturnError::OtherBrowser)?;
        one.returned = true;
        Ok(one.clone())
    }

    /// Returns true if this sign-in is still pending.
    #[must_use]
    pub fn has(&self, sign_in: &SignIn) -> bool {
        self.0.contains_key(&sign_in.state)
    }

    /// Removes all sign-ins of a principal.
    pub fn forget(&mut self, subject: &str) {
        self.0.retain(|_, one| one.holder.subject != subject);
    }

    /// Removes a sign-in whose browser has returned. After a success, it also removes the holder's unopened sign-ins:
    /// they would request the same token, and a call would wait for them.
    pub fn end(&mut self, state: &str, is_success: bool) {
        let Some(ended) = self.0.get(state).filter(|one| one.returned).map(|one| one.holder.clone()) else { return };
        self.0.remove(state);
        if is_success {
            self.0.retain(|_, one| one.holder != ended || one.opened.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_identity::ClientAuth;
    use crate::discovery::ServerMetadata;

    fn sign_in(iss: bool, methods: Option<&[&str]>) -> Result<SignIn, OauthError> {
        let server = ServerMetadata {
            issuer: "https://as.example".to_owned(),
            authorization_endpoint: Some("https://as.example/authorize?x=1".to_owned()),
            code_challenge_methods_supported: methods.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            authorization_response_iss_parameter_supported: iss,
            ..ServerMetadata::default()
        };
        let client = ClientIdentity {
            issuer: server.issuer.clone(),
            id: "me".to_owned(),
            secret: None,
            key_file: None,
            auth: ClientAuth::None,
            redirect_uri: "http://127.0.0.1:7/auth/callback".to_owned(),
            expires: 0,
        };
        let found = DiscoveredServer { resource: "https://a.example/mcp".to_owned(), scopes: Vec::new(), server };
        let holder = TokenHolder { backend: "b".to_owned(), subject: "*".to_owned() };
        SignIn::begin(holder, client, found, vec!["x".to_owned(), "y".to_owned()], true)
    }

    #[test]
    fn a_server_that_does_not_announce_s256_is_refused() {
        assert!(sign_in(false, None).is_err());
        assert!(sign_in(false, Some(&["plain"])).is_err());
        let url = sign_in(false, Some(&["plain", "S256"])).unwrap().authorization_url();
        assert!(url.starts_with("https://as.example/authorize?x=1&response_type=code&client_id=me&"), "{url}");
        assert!(
            url.contains("&code_challenge_method=S256&scope=x%20y&resource=https%3A%2F%2Fa.example%2Fmcp"),
            "{url}"
        );
    }

    #[test]
    fn the_four_rows_of_iss_hold_and_nothing_is_normalised() {
        let check = |advertised: bool, iss: Option<&str>| {
            let mut query = vec![("code".to_owned(), "c".to_owned())];
            query.extend(iss.map(|iss| ("iss".to_owned(), iss.to_owned())));
            sign_in(advertised, Some(&["S256"])).unwrap().code(&query).is_ok()
        };
        assert!(check(true, Some("https://as.example")));
        assert!(!check(true, None));
        assert!(check(false, None));
        assert!(check(false, Some("https://as.example")));
        for wrong in ["https://evil.example", "https://as.example/", "https://AS.example", "https://as.example:443"] {
            assert!(!check(false, Some(wrong)) && !check(true, Some(wrong)), "{wrong}");
        }
    }

    #[test]
    fn an_error_of_somebody_else_is_not_shown() {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let one = sign_in(true, Some(&["S256"])).unwrap();
        let wrong = one.code(&pairs(&[("error", "call_this_number"), ("iss", "https://evil.example")])).unwrap_err();
        assert!(!wrong.to_string().contains("call_this"), "{wrong}");
        let right = one.code(&pairs(&[("error", "access_denied"), ("iss", "https://as.example")])).unwrap_err();
        assert!(right.to_string().contains("access_denied"), "{right}");
        let odd = one.code(&pairs(&[("error", "<b>Call</b>"), ("iss", "https://as.example")])).unwrap_err();
        assert!(!odd.to_string().contains('<'), "{odd}");
    }

    #[test]
    fn tickets_and_states_are_good_once() {
        let mut all = SignIns::default();
        let one = sign_in(false, Some(&["S256"])).unwrap();
        let (ticket, state) = (one.ticket.clone(), one.state.clone());
        all.add(one);
        assert!(all.holder(&ticket).is_some() && all.holder("other").is_none());
        let (_, cookie) = all.bind(&ticket, "made-up", false).unwrap();
        assert!(cookie.contains("=made-up; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        assert!(all.open(&ticket, &cookie, false).is_some() && all.open(&ticket, &cookie, false).is_none());
        assert!(all.bind(&ticket, "other", false).is_none(), "nobody takes over what somebody has gone on with");
        assert_eq!(all.take("other", &cookie, false).unwrap_err(), ReturnError::Unknown);
        assert!(all.take(&state, &cookie, false).is_ok());
        assert_eq!(all.take(&state, &cookie, false).unwrap_err(), ReturnError::Unknown);
    }

    #[test]
    fn a_sign_in_stays_in_the_browser_in_which_it_was_begun() {
        let mut all = SignIns::default();
        let one = sign_in(false, Some(&["S256"])).unwrap();
        let (ticket, state) = (one.ticket.clone(), one.state.clone());
        all.add(one);
        assert!(all.open(&ticket, "", true).is_none(), "nobody has looked at the page");
        let first = all.bind(&ticket, "one", true).unwrap().1;
        assert!(first.starts_with("__Host-") && first.ends_with("; Secure"), "{first}");
        let second = all.bind(&ticket, "two", true).unwrap().1;
        let value = |cookie: &str| cookie.split(';').next().unwrap().to_owned();
        let (first, second) = (value(&first), value(&second));
        for more in 0..20 {
            all.bind(&ticket, &format!("more-{more}"), true).unwrap();
        }
        assert!(all.open(&ticket, &first, true).is_some(), "later browsers take nothing from the first one");
        assert!(all.open(&ticket, &second, true).is_none());
        for foreign in ["", "a=b", second.as_str(), &first.replace("=one", "="), first.trim_start_matches("__Host-")] {
            assert_eq!(all.take(&state, foreign, true).unwrap_err(), ReturnError::OtherBrowser, "{foreign}");
        }
        assert!(all.take(&state, &format!("a=b; {first}"), true).is_ok(), "strangers do not end it");
    }

    #[test]
    fn a_sign_in_is_awaited_until_its_code_is_exchanged_and_ends_those_that_were_not_opened() {
        let mut all = SignIns::default();
        let (one, other) = (sign_in(false, Some(&["S256"])).unwrap(), sign_in(false, Some(&["S256"])).unwrap());
        let (ticket, state, holder) = (one.ticket.clone(), one.state.clone(), one.holder.clone());
        let unopened = other.ticket.clone();
        all.add(one);
        all.add(other);
        assert!(all.is_unopened(&holder) && !all.is_open(&holder));
        let (_, cookie) = all.bind(&ticket, "made-up", false).unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        all.open(&ticket, &cookie, false).unwrap();
        all.take(&state, &cookie, false).unwrap();
        assert!(all.is_open(&holder), "the code is not exchanged yet");
        assert_eq!(all.take(&state, &cookie, false).unwrap_err(), ReturnError::Unknown, "a state is good once");
        assert!(all.returning(&state).is_none());
        all.end(&state, true);
        assert!(!all.is_open(&holder) && !all.is_unopened(&holder) && all.holder(&unopened).is_none());
    }
}
