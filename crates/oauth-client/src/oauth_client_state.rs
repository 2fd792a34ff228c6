//! State that the OAuth clients of all backends share: token store, pending sign-ins, and sign-in pages.

use crate::browser_page::{content_policy, document, escaped, guards, style_source};
use crate::callback_listener::CallbackListener;
use crate::client_identity::ClientIdentity;
use crate::discovery::ServerMetadata;
use crate::error::OauthError;
use crate::oauth_credentials::SHARED_SUBJECT;
use crate::outbound::OutboundSettings;
use crate::page_host::{PageHost, Place};
use crate::pkce;
use crate::private_key::now;
use crate::sign_in::{ReturnError, SignIn, SignIns, TokenHolder};
use crate::spec::ClientSpec;
use crate::token_exchange::token_endpoint;
use crate::token_request::{TokenContext, TokenSet};
use crate::vault::{Vault, VaultContents};
use signalbox_engine::Principal;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::caller_tokens::CallerTokens;
use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Path prefix at which a sign-in begins; a ticket follows.
pub const CONNECT: &str = "/auth/connect/";
/// Path of the redirect URI.
pub const CALLBACK: &str = "/auth/callback";
/// Maximum time that a call waits for a person to sign in, and for the browser to open after a sign-in was offered.
const BROWSER_TIME: Duration = Duration::from_secs(45);
const OPENING_TIME: Duration = Duration::from_secs(3);
/// Age at which an offered sign-in may be about to be opened. Below it, no person can have seen it yet: the requests of
/// one handshake are refused together.
const JUST_NOW: Range<Duration> = Duration::from_millis(300)..Duration::from_secs(10);
/// Interval at which the store is read again for a missing token.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);

/// A sign-in at a backend that has ended.
#[derive(Copy, Clone, Debug)]
pub struct EndedSignIn<'a> {
    /// Holder of the tokens; `None` if no sign-in matches the response.
    pub holder: Option<&'a TokenHolder>,
    /// Listener that the browser returned to.
    pub place: Place,
    /// Reason of the failure, if it failed.
    pub outcome: Result<(), &'a OauthError>,
}

impl EndedSignIn<'_> {
    /// Returns the name of the backend; empty if no sign-in matches.
    #[must_use]
    pub fn backend(&self) -> &str {
        self.holder.map_or("", |holder| &holder.backend)
    }
}

/// Callback for the end of a sign-in. The browser is answered once the returned audit record is written.
type SignInCallback = Box<dyn Fn(&EndedSignIn<'_>) -> Option<IntentWrite> + Send + Sync>;

/// Callback for a browser at the loopback listener that opens a link of no sign-in: its method and address.
type StrayLinkCallback = Box<dyn Fn(&'static str, Option<SocketAddr>) + Send + Sync>;

/// State shared by the OAuth clients of all backends.
pub struct OauthClientState {
    /// Rules for outbound requests.
    pub outbound: OutboundSettings,
    pub vault: Vault,
    /// Listeners that serve the sign-in pages.
    pub pages: PageHost,
    /// Tokens of callers, for backends that exchange them.
    pub callers: Arc<CallerTokens>,
    sign_ins: Mutex<SignIns>,
    tokens: Mutex<TokenCache>,
    turns: Mutex<HashMap<TokenHolder, Arc<tokio::sync::Mutex<()>>>>,
    listener: tokio::sync::Mutex<Option<CallbackListener>>,
    signed_in: OnceLock<SignInCallback>,
    stray_link: OnceLock<StrayLinkCallback>,
    /// Incremented whenever a sign-in is opened or ends.
    transitions: tokio::sync::watch::Sender<u64>,
}

/// Cache of tokens, each with the time of its lookup.
#[derive(Default)]
struct TokenCache {
    /// Modification time of the store when the cache was filled.
    store: Option<SystemTime>,
    all: HashMap<TokenHolder, (Option<TokenSet>, Instant)>,
}

/// Response to a browser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BrowserResponse {
    /// Redirect to another URL.
    Redirect {
        url: String,
        /// Cookie to set, if any.
        cookie: Option<String>,
    },
    /// Confirmation page, with a form that posts to the same URL.
    Ask { html: String, cookie: String },
    /// Plain text for the person.
    Text {
        status: u16,
        /// Text of the message.
        text: String,
    },
}

impl BrowserResponse {
    /// Returns the headers of every page: no scripts, no frames, and no leak of the query.
    #[must_use]
    pub fn guards(&self) -> [(&'static str, String); 4] {
        let (style, referrer) = match self {
            Self::Ask { .. } => (Some(style_source()), "same-origin"),
            Self::Redirect { .. } | Self::Text { .. } => (None, "no-referrer"),
        };
        let [cache, referrer, types] = guards(referrer);
        // No `form-action`: the form is answered with a redirect to the provider.
        [("content-security-policy", content_policy(style.as_deref(), None)), cache, referrer, types]
    }
}

impl OauthClientState {
    /// Creates the shared state over a token store.
    #[must_use]
    pub fn new(outbound: OutboundSettings, vault: Vault, pages: PageHost) -> Arc<Self> {
        Arc::new(Self {
            outbound,
            vault,
            pages,
            callers: Arc::default(),
            sign_ins: Mutex::default(),
            tokens: Mutex::default(),
            turns: Mutex::default(),
            listener: tokio::sync::Mutex::default(),
            signed_in: OnceLock::new(),
            stray_link: OnceLock::new(),
            transitions: tokio::sync::watch::Sender::default(),
        })
    }

    /// Sets the callback for ended sign-ins. Only the first call has an effect.
    pub fn on_sign_in(&self, callback: impl Fn(&EndedSignIn<'_>) -> Option<IntentWrite> + Send + Sync + 'static) {
        let _ = self.signed_in.set(Box::new(callback));
    }

    /// Sets the callback for links of no sign-in at the loopback listener. Only the first call has an effect.
    pub fn on_stray_link(&self, callback: impl Fn(&'static str, Option<SocketAddr>) + Send + Sync + 'static) {
        let _ = self.stray_link.set(Box::new(callback));
    }

    /// Reports a browser at the loopback listener that opened a link of no sign-in.
    pub(crate) fn report_stray_link(&self, method: &'static str, browser: Option<SocketAddr>) {
        if let Some(callback) = self.stray_link.get() {
            callback(method, browser);
        }
    }

    /// Returns the lock that serializes token requests for a holder.
    pub(crate) fn turn(&self, holder: &TokenHolder) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.turns.lock().unpoisoned().entry(holder.clone()).or_default())
    }

    /// Returns the token of a holder, from the cache if it is current.
    pub(crate) async fn token(&self, holder: &TokenHolder) -> Result<Option<TokenSet>, OauthError> {
        let changed = self.vault.changed();
        let known = {
            let mut tokens = self.tokens.lock().unpoisoned();
            // Another process may have signed in or out.
            if tokens.store != changed {
                *tokens = TokenCache { store: changed, all: HashMap::new() };
            }
            tokens.all.get(holder).cloned()
        };
        match known {
            Some((Some(token), _)) => Ok(Some(token)),
            Some((None, looked)) if looked.elapsed() < REREAD_INTERVAL => Ok(None),
            _ => self.token_in_store(holder).await,
        }
    }

    /// Returns the token of a holder from the store, where another process may have put it.
    pub(crate) async fn token_in_store(&self, holder: &TokenHolder) -> Result<Option<TokenSet>, OauthError> {
        let kept = self.vault.read().await?;
        let token = kept.tokens.get(&holder.backend).and_then(|tokens| tokens.get(&holder.subject)).cloned();
        self.tokens.lock().unpoisoned().all.insert(holder.clone(), (token.clone(), Instant::now()));
        Ok(token)
    }

    /// Stores a token in the vault and in the cache.
    pub(crate) async fn keep(&self, holder: &TokenHolder, token: TokenSet) -> Result<(), OauthError> {
        let kept = token.clone();
        self.vault
            .change(|all| {
                all.issuers.insert(holder.backend.clone(), kept.issuer.clone());
                if let Some(wanted) = all.wanted.get_mut(&holder.backend) {
                    wanted.remove(&holder.subject);
                }
                all.tokens.entry(holder.backend.clone()).or_default().insert(holder.subject.clone(), kept);
            })
            .await?;
        self.tokens.lock().unpoisoned().all.insert(holder.clone(), (Some(token), Instant::now()));
        Ok(())
    }

    /// Removes the token of a holder. Returns true if there was one.
    ///
    /// # Errors
    /// If the store cannot be changed.
    pub async fn forget(&self, holder: &TokenHolder) -> Result<bool, OauthError> {
        self.tokens.lock().unpoisoned().all.remove(holder);
        let forget = |all: &mut VaultContents| {
            let tokens = all.tokens.get_mut(&holder.backend);
            tokens.is_some_and(|tokens| tokens.remove(&holder.subject).is_some())
        };
        Ok(self.vault.change(forget).await?)
    }

    /// Removes the sign-ins of a principal that no longer exists. A later principal of the same name must not continue
    /// them, or get the account that was chosen there.
    pub fn forget_sign_ins(&self, principal: &Principal) {
        self.sign_ins.lock().unpoisoned().forget(principal.as_str());
        self.transitions.send_modify(|count| *count += 1);
    }

    /// Stores the scopes that a server requires, for the next sign-in of the holder, in any process.
    pub(crate) async fn want(&self, holder: &TokenHolder, scopes: &[String]) -> Result<(), OauthError> {
        let kept = self.vault.read().await?;
        if kept.wanted.get(&holder.backend).and_then(|all| all.get(&holder.subject)).is_some_and(|own| own == scopes) {
            return Ok(());
        }
        let want = |all: &mut VaultContents| {
            let wanted = all.wanted.entry(holder.backend.clone()).or_default();
            wanted.insert(holder.subject.clone(), scopes.to_vec());
        };
        Ok(self.vault.change(want).await?)
    }

    /// Returns the gateway's client at the authorization server: configured, by document, registered before, or newly
    /// registered.
    pub(crate) async fn client(
        &self,
        configured: Option<&ClientSpec>,
        server: &ServerMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<ClientIdentity, OauthError> {
        if let Some(spec) = configured {
            return ClientIdentity::configured(spec, server, redirect_uri).await;
        }
        if let Some(client) = ClientIdentity::by_document(&self.outbound, server, redirect_uri) {
            return Ok(client);
        }
        let kept = self.vault.read().await?;
        if let Some(client) = kept.clients.iter().find(|client| client.serves(server, redirect_uri, now())) {
            return Ok(client.clone());
        }
        let client = ClientIdentity::registered(&self.outbound, server, redirect_uri, scopes).await?;
        let new = client.clone();
        self.vault
            .change(|all| {
                all.clients.retain(|one| one.issuer != new.issuer || one.redirect_uri != new.redirect_uri);
                all.clients.push(new);
            })
            .await?;
        Ok(client)
    }

    /// Returns the registered client that a token was issued to, if it is still stored.
    pub(crate) async fn kept_client(&self, token: &TokenSet) -> Result<Option<ClientIdentity>, OauthError> {
        let kept = self.vault.read().await?;
        let fits = |client: &ClientIdentity| client.issuer == token.issuer && client.id == token.client_id;
        Ok(kept.clients.into_iter().find(fits))
    }

    /// Returns the base URL of this holder's sign-in pages. Opens the loopback listener when it is first needed.
    ///
    /// # Errors
    /// If the listener cannot be opened, or the holder has to authenticate and this process has no page for that.
    pub async fn base(self: &Arc<Self>, holder: &TokenHolder) -> Result<String, OauthError> {
        if self.pages.place(&holder.subject) == Place::Listener {
            return self.pages.listener().map(str::to_owned).ok_or(OauthError::NoPages);
        }
        let mut listener = self.listener.lock().await;
        if let Some(listener) = &*listener {
            return Ok(listener.base());
        }
        let before = self.vault.read().await?.redirect_port;
        let opened = CallbackListener::open(self, before).await?;
        let port = opened.port();
        if before != Some(port) {
            self.vault.change(|all| all.redirect_port = Some(port)).await?;
        }
        let base = opened.base();
        *listener = Some(opened);
        Ok(base)
    }

    /// Registers a sign-in and returns the URL for the person. Reuses a pending sign-in with the same scopes.
    pub(crate) fn add_sign_in(&self, base: &str, sign_in: SignIn) -> String {
        let mut all = self.sign_ins.lock().unpoisoned();
        let issuer = sign_in.found.server.issuer.clone();
        if let Some(waiting) = all.waiting(&sign_in.holder, &sign_in.scopes, &issuer) {
            return format!("{base}{CONNECT}{}", waiting.ticket);
        }
        let url = format!("{base}{CONNECT}{}", sign_in.ticket);
        all.add(sign_in);
        url
    }

    /// Waits while the holder is in the browser, so that the call finds the token afterwards. Also waits briefly for a
    /// sign-in that was just offered and may be about to be opened.
    pub(crate) async fn wait_for_browser(&self, holder: &TokenHolder) {
        let mut transitions = self.transitions.subscribe();
        let opening = async {
            while self.sign_ins.lock().unpoisoned().is_offered(holder, &JUST_NOW) {
                let _ = transitions.changed().await;
            }
        };
        let _ = tokio::time::timeout(OPENING_TIME, opening).await;
        self.wait_for_end(holder, false).await;
    }

    /// Returns true if a sign-in of the holder is open in a browser; with `agreed`, also if one is offered but not
    /// opened yet.
    pub(crate) fn is_awaited(&self, holder: &TokenHolder, agreed: bool) -> bool {
        let all = self.sign_ins.lock().unpoisoned();
        all.is_open(holder) || agreed && all.is_unopened(holder)
    }

    /// Waits until no sign-in of the holder is awaited, or a timeout. With `agreed`, the person gets that time to open
    /// the URL.
    pub(crate) async fn wait_for_end(&self, holder: &TokenHolder, agreed: bool) {
        let mut transitions = self.transitions.subscribe();
        let ending = async {
            while self.is_awaited(holder, agreed) {
                let _ = transitions.changed().await;
            }
        };
        let _ = tokio::time::timeout(BROWSER_TIME, ending).await;
    }

    /// Returns the holder of a ticket, if the ticket is valid at this place.
    #[must_use]
    pub fn holder(&self, ticket: &str, place: Place) -> Option<TokenHolder> {
        self.sign_ins.lock().unpoisoned().holder(ticket).filter(|holder| self.is_at(holder, place)).cloned()
    }

    /// Returns the holder of the sign-in that returns to this place with this `state`.
    #[must_use]
    pub fn returning(&self, state: &str, place: Place) -> Option<TokenHolder> {
        self.sign_ins.lock().unpoisoned().returning(state).filter(|holder| self.is_at(holder, place)).cloned()
    }

    fn is_at(&self, holder: &TokenHolder, place: Place) -> bool {
        self.pages.place(&holder.subject) == place
    }

    /// Returns the page of a ticket. Redirects a browser that has authenticated as the holder. Any other browser gets a
    /// confirmation page that names the holder, because signing in lends the holder an account.
    #[must_use]
    pub fn connect(&self, ticket: &str, place: Place, is_holder: bool) -> BrowserResponse {
        if self.holder(ticket, place).is_none() {
            return invalid_ticket();
        }
        let is_secure = self.pages.is_secure(place);
        let Ok(secret) = pkce::random() else { return no_randomness() };
        let mut all = self.sign_ins.lock().unpoisoned();
        let Some((sign_in, cookie)) = all.bind(ticket, &secret, is_secure) else { return invalid_ticket() };
        if !is_holder {
            return BrowserResponse::Ask { html: question(sign_in), cookie };
        }
        let own = cookie.split(';').next().unwrap_or_default().to_owned();
        let url = all.open(ticket, &own, is_secure);
        drop(all);
        self.redirect_to(url, Some(cookie))
    }

    /// Returns the response to a person who confirms.
    #[must_use]
    pub fn confirm(&self, ticket: &str, place: Place, cookies: &str) -> BrowserResponse {
        if self.holder(ticket, place).is_none() {
            return invalid_ticket();
        }
        let url = self.sign_ins.lock().unpoisoned().open(ticket, cookies, self.pages.is_secure(place));
        self.redirect_to(url, None)
    }

    fn redirect_to(&self, url: Option<String>, cookie: Option<String>) -> BrowserResponse {
        let Some(url) = url else { return invalid_ticket() };
        self.transitions.send_modify(|count| *count += 1);
        BrowserResponse::Redirect { url, cookie }
    }

    /// Handles the return of a browser with these cookies.
    pub async fn callback(&self, query: Vec<(String, String)>, place: Place, cookies: &str) -> BrowserResponse {
        let state = query.iter().find(|(name, _)| name == "state").map_or("", |(_, value)| value.as_str());
        let taken = match self.returning(state, place) {
            Some(_) => self.sign_ins.lock().unpoisoned().take(state, cookies, self.pages.is_secure(place)),
            None => Err(ReturnError::Unknown),
        };
        if taken.as_ref().is_err_and(|why| *why == ReturnError::OtherBrowser) {
            let text = "This sign-in was begun in another browser, and can be completed only there.";
            return BrowserResponse::Text { status: 403, text: text.to_owned() };
        }
        let sign_in = taken.ok();
        let outcome = match &sign_in {
            Some(sign_in) => self.redeem(sign_in, &query).await,
            None => Err(OauthError::NotOurs),
        };
        self.sign_ins.lock().unpoisoned().end(state, outcome.is_ok());
        let holder = sign_in.as_ref().map(|sign_in| &sign_in.holder);
        let ended = EndedSignIn { holder, place, outcome: outcome.as_ref().copied() };
        let backend = ended.backend();
        let is_recorded = match self.notify(&ended) {
            Some(recorded) => recorded.await,
            None => true,
        };
        match &outcome {
            Ok(()) if !is_recorded => {
                let text = "You are signed in, but this could not be written to the audit log.";
                BrowserResponse::Text { status: 503, text: text.to_owned() }
            }
            Ok(()) => {
                tracing::info!(%backend, "a user signed in at the backend");
                BrowserResponse::Text { status: 200, text: "You are signed in. You can close this window.".to_owned() }
            }
            Err(error) => {
                tracing::warn!(%backend, %error, "a sign-in at a backend failed");
                BrowserResponse::Text { status: 400, text: format!("The sign-in failed: {error}.") }
            }
        }
    }

    fn notify(&self, ended: &EndedSignIn<'_>) -> Option<IntentWrite> {
        self.transitions.send_modify(|count| *count += 1);
        self.signed_in.get().and_then(|callback| callback(ended))
    }

    /// Exchanges the authorization code for a token.
    async fn redeem(&self, sign_in: &SignIn, query: &[(String, String)]) -> Result<(), OauthError> {
        let code = sign_in.code(query)?;
        let context = TokenContext {
            client: &sign_in.client,
            token_endpoint: token_endpoint(&sign_in.found.server)?,
            resource: &sign_in.found.resource,
            takes_resource: sign_in.takes_resource,
            scopes: &sign_in.scopes,
        };
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", &sign_in.client.redirect_uri),
            ("code_verifier", &sign_in.verifier),
        ];
        let turn = self.turn(&sign_in.holder);
        let _turn = turn.lock().await;
        let token = context.ask(&self.outbound, &grant).await?;
        // The principal may have been removed meanwhile.
        if !self.sign_ins.lock().unpoisoned().has(sign_in) {
            return Err(OauthError::NotOurs);
        }
        self.keep(&sign_in.holder, token).await
    }
}

/// Renders the question whether a caller may use a backend with the person's account.
fn question(sign_in: &SignIn) -> String {
    let holder = &sign_in.holder;
    let backend = escaped(&holder.backend);
    let who = match holder.subject == SHARED_SUBJECT {
        true => "every caller of this gateway".to_owned(),
        false => format!("<b>{}</b>", escaped(&holder.subject)),
    };
    let body = format!(
        "<h1>Sign in at {backend}?</h1><p>You are about to let {who} use <b>{backend}</b> with your account at <b>{}</b>. \
         What is done there counts as done by you.</p><p>Go on only if you asked for this yourself just now. If another person sent you this \
         address, close the page.</p><form method=\"post\"><button>Go on</button></form>",
        escaped(&sign_in.found.server.issuer),
    );
    document("Sign in at a backend", &body)
}

fn invalid_ticket() -> BrowserResponse {
    let text = "This address was used already, or it is too old. Try again what led here, to get a new one.";
    BrowserResponse::Text { status: 404, text: text.to_owned() }
}

fn no_randomness() -> BrowserResponse {
    BrowserResponse::Text { status: 500, text: "The system gives no randomness.".to_owned() }
}
