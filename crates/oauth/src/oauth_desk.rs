//! What the OAuth clients of all backends share: the token store, the sign-ins under way, and the pages that browsers are sent to.

use crate::browser_page::{document, escaped, style_source};
use crate::client_identity::ClientIdentity;
use crate::discovery::ServerMetadata;
use crate::error::OauthError;
use crate::loopback_door::LoopbackDoor;
use crate::oauth_credentials::EVERYBODY;
use crate::outbound::Outbound;
use crate::page_host::{PageHost, Place};
use crate::pkce;
use crate::private_key::now;
use crate::sign_in::{Holder, NotReturned, SignIn, SignIns};
use crate::spec::ClientSpec;
use crate::token_exchange::token_endpoint;
use crate::token_request::{TokenContext, TokenSet};
use crate::vault::{Kept, Vault};
use signalbox_engine::Principal;
use signalbox_engine::caller_tokens::CallerTokens;
use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Where people begin a sign-in; a ticket follows.
pub const CONNECT: &str = "/auth/connect/";
/// Where browsers come back to.
pub const CALLBACK: &str = "/auth/callback";
/// How long a call waits for a person who is signing in, and for the browser to open if a sign-in was offered just now.
const BROWSER_TIME: Duration = Duration::from_secs(45);
const OPENING_TIME: Duration = Duration::from_secs(3);
/// When a sign-in counts as offered just now. Earlier nobody can have seen it: several requests of one handshake are refused at once.
const JUST_NOW: Range<Duration> = Duration::from_millis(300)..Duration::from_secs(10);
/// How often the store is read again for a token that is not there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A sign-in at a backend that has ended.
#[derive(Copy, Clone, Debug)]
pub struct EndedSignIn<'a> {
    /// Whose it was; `None` if the browser came back from none of ours.
    pub holder: Option<&'a Holder>,
    /// The listener that the browser came back to.
    pub place: Place,
    /// Why it failed, if it did.
    pub outcome: Result<(), &'a OauthError>,
}

impl EndedSignIn<'_> {
    /// The name of the backend; empty if it is none of ours.
    #[must_use]
    pub fn backend(&self) -> &str {
        self.holder.map_or("", |holder| &holder.backend)
    }
}

/// Told what became of a sign-in at a backend.
type SignedIn = Box<dyn Fn(&EndedSignIn<'_>) + Send + Sync>;

/// Shared by the OAuth clients of all backends.
pub struct OauthDesk {
    /// Where requests may go.
    pub outbound: Outbound,
    /// The token store.
    pub vault: Vault,
    /// The listeners that have the pages of sign-ins.
    pub pages: PageHost,
    /// What callers showed, for backends that take something in exchange for it.
    pub callers: Arc<CallerTokens>,
    sign_ins: Mutex<SignIns>,
    tokens: Mutex<KnownTokens>,
    turns: Mutex<HashMap<Holder, Arc<tokio::sync::Mutex<()>>>>,
    door: tokio::sync::Mutex<Option<LoopbackDoor>>,
    signed_in: OnceLock<SignedIn>,
    /// Counts what happens to sign-ins: opened, ended.
    moves: tokio::sync::watch::Sender<u64>,
}

/// Tokens that were read or got, each with when that was.
#[derive(Default)]
struct KnownTokens {
    /// When the store was changed last, as far as this process knows.
    store: Option<SystemTime>,
    all: HashMap<Holder, (Option<TokenSet>, Instant)>,
}

/// What a browser gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Page {
    /// Another address to go to.
    Redirect {
        /// The address.
        url: String,
        /// The cookie to set, if any.
        cookie: Option<String>,
    },
    /// A question, as HTML, with a form that is posted to the same address.
    Ask {
        /// The document.
        html: String,
        /// The cookie to set.
        cookie: String,
    },
    /// A text for the person.
    Text {
        /// The HTTP status.
        status: u16,
        /// The sentence.
        text: String,
    },
}

impl Page {
    /// The headers of every page: no script, no frame, no trace of the query in other places. A browser must still say where the form
    /// of a question comes from, which `no-referrer` would take away too.
    #[must_use]
    pub fn guards(&self) -> [(&'static str, String); 4] {
        let (style, referrer) = match self {
            Self::Ask { .. } => (format!(" style-src {};", style_source()), "same-origin"),
            Self::Redirect { .. } | Self::Text { .. } => (String::new(), "no-referrer"),
        };
        let policy = format!("default-src 'none';{style} base-uri 'none'; frame-ancestors 'none'");
        [
            ("content-security-policy", policy),
            ("referrer-policy", referrer.to_owned()),
            ("cache-control", "no-store".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ]
    }
}

impl OauthDesk {
    /// A desk over a token store.
    #[must_use]
    pub fn new(outbound: Outbound, vault: Vault, pages: PageHost) -> Arc<Self> {
        Arc::new(Self {
            outbound,
            vault,
            pages,
            callers: Arc::default(),
            sign_ins: Mutex::default(),
            tokens: Mutex::default(),
            turns: Mutex::default(),
            door: tokio::sync::Mutex::default(),
            signed_in: OnceLock::new(),
            moves: tokio::sync::watch::Sender::default(),
        })
    }

    /// Calls this whenever a sign-in has ended. Only the first caller is heard.
    pub fn on_sign_in(&self, told: impl Fn(&EndedSignIn<'_>) + Send + Sync + 'static) {
        let _ = self.signed_in.set(Box::new(told));
    }

    /// Whoever gets a token for this holder waits for its turn.
    pub(crate) fn turn(&self, holder: &Holder) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.turns.lock().unpoisoned().entry(holder.clone()).or_default())
    }

    /// The token of a holder, as it is known.
    pub(crate) async fn token(&self, holder: &Holder) -> Result<Option<TokenSet>, OauthError> {
        let changed = self.vault.changed();
        let known = {
            let mut tokens = self.tokens.lock().unpoisoned();
            // Another process may have signed in or out.
            if tokens.store != changed {
                *tokens = KnownTokens { store: changed, all: HashMap::new() };
            }
            tokens.all.get(holder).cloned()
        };
        match known {
            Some((Some(token), _)) => Ok(Some(token)),
            Some((None, looked)) if looked.elapsed() < LOOK_AGAIN => Ok(None),
            _ => self.token_in_store(holder).await,
        }
    }

    /// The token of a holder in the store, where another process may have put it.
    pub(crate) async fn token_in_store(&self, holder: &Holder) -> Result<Option<TokenSet>, OauthError> {
        let kept = self.vault.read().await?;
        let token = kept.tokens.get(&holder.backend).and_then(|tokens| tokens.get(&holder.subject)).cloned();
        self.tokens.lock().unpoisoned().all.insert(holder.clone(), (token.clone(), Instant::now()));
        Ok(token)
    }

    /// Keeps a token.
    pub(crate) async fn keep(&self, holder: &Holder, token: TokenSet) -> Result<(), OauthError> {
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

    /// Forgets the token of a holder. True if there was one.
    ///
    /// # Errors
    /// If the store cannot be changed.
    pub async fn forget(&self, holder: &Holder) -> Result<bool, OauthError> {
        self.tokens.lock().unpoisoned().all.remove(holder);
        let forget = |all: &mut Kept| {
            let tokens = all.tokens.get_mut(&holder.backend);
            tokens.is_some_and(|tokens| tokens.remove(&holder.subject).is_some())
        };
        Ok(self.vault.change(forget).await?)
    }

    /// Forgets the sign-ins of a principal that is gone: the next one of its name must not be sent into them, or get
    /// the account that somebody chose there.
    pub fn forget_sign_ins(&self, principal: &Principal) {
        self.sign_ins.lock().unpoisoned().forget(principal.as_str());
        self.moves.send_modify(|count| *count += 1);
    }

    /// Remembers the scopes that a server asked for, for whoever signs in next, in this process or another.
    pub(crate) async fn want(&self, holder: &Holder, scopes: &[String]) -> Result<(), OauthError> {
        let kept = self.vault.read().await?;
        if kept.wanted.get(&holder.backend).and_then(|all| all.get(&holder.subject)).is_some_and(|own| own == scopes) {
            return Ok(());
        }
        let want = |all: &mut Kept| {
            let wanted = all.wanted.entry(holder.backend.clone()).or_default();
            wanted.insert(holder.subject.clone(), scopes.to_vec());
        };
        Ok(self.vault.change(want).await?)
    }

    /// The client that the authorization server knows us as: by hand, by document, as registered before, newly registered.
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

    /// The registered client that a token was given to, if it is still kept.
    pub(crate) async fn kept_client(&self, token: &TokenSet) -> Result<Option<ClientIdentity>, OauthError> {
        let kept = self.vault.read().await?;
        let fits = |client: &ClientIdentity| client.issuer == token.issuer && client.id == token.client_id;
        Ok(kept.clients.into_iter().find(fits))
    }

    /// The address at which browsers find the pages of this holder's sign-in. A port on loopback is opened when
    /// it is first needed.
    ///
    /// # Errors
    /// If there is no port for it, or the holder would have to prove itself and this process has no page for that.
    pub async fn base(self: &Arc<Self>, holder: &Holder) -> Result<String, OauthError> {
        if self.pages.place(&holder.subject) == Place::Listener {
            return self.pages.listener().map(str::to_owned).ok_or(OauthError::NoPages);
        }
        let mut door = self.door.lock().await;
        if let Some(door) = &*door {
            return Ok(door.base());
        }
        let before = self.vault.read().await?.redirect_port;
        let opened = LoopbackDoor::open(self, before).await?;
        let port = opened.port();
        if before != Some(port) {
            self.vault.change(|all| all.redirect_port = Some(port)).await?;
        }
        let base = opened.base();
        *door = Some(opened);
        Ok(base)
    }

    /// The address that a person opens to sign in. Of sign-ins that ask for the same, one is enough.
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

    /// Waits while the holder is in the browser, so that a call which comes back from there finds the token. A sign-in that was
    /// offered just now may be about to be opened.
    pub(crate) async fn wait_for_browser(&self, holder: &Holder) {
        let mut moves = self.moves.subscribe();
        let opening = async {
            while self.sign_ins.lock().unpoisoned().is_offered(holder, &JUST_NOW) {
                let _ = moves.changed().await;
            }
        };
        let _ = tokio::time::timeout(OPENING_TIME, opening).await;
        self.wait_for_end(holder, false).await;
    }

    /// True if a sign-in of the holder is open in a browser; with `agreed` also if one is offered and not opened yet.
    pub(crate) fn is_awaited(&self, holder: &Holder, agreed: bool) -> bool {
        let all = self.sign_ins.lock().unpoisoned();
        all.is_open(holder) || agreed && all.is_unopened(holder)
    }

    /// Waits until no sign-in of the holder is awaited, or a person has taken too long. A person who has agreed to open
    /// the address gets that time to do so.
    pub(crate) async fn wait_for_end(&self, holder: &Holder, agreed: bool) {
        let mut moves = self.moves.subscribe();
        let ending = async {
            while self.is_awaited(holder, agreed) {
                let _ = moves.changed().await;
            }
        };
        let _ = tokio::time::timeout(BROWSER_TIME, ending).await;
    }

    /// The holder whose ticket this is, while it is good at this place.
    #[must_use]
    pub fn holder(&self, ticket: &str, place: Place) -> Option<Holder> {
        self.sign_ins.lock().unpoisoned().holder(ticket).filter(|holder| self.is_at(holder, place)).cloned()
    }

    /// The holder whose sign-in comes back to this place with this `state`.
    #[must_use]
    pub fn returning(&self, state: &str, place: Place) -> Option<Holder> {
        self.sign_ins.lock().unpoisoned().returning(state).filter(|holder| self.is_at(holder, place)).cloned()
    }

    fn is_at(&self, holder: &Holder, place: Place) -> bool {
        self.pages.place(&holder.subject) == place
    }

    /// The page of a ticket. A browser that has proved to be its holder is sent on; any other one is asked, by a page that names the
    /// holder, because whoever goes on lends it an account.
    #[must_use]
    pub fn connect(&self, ticket: &str, place: Place, is_holder: bool) -> Page {
        if self.holder(ticket, place).is_none() {
            return used_up();
        }
        let is_secure = self.pages.is_secure(place);
        let Ok(secret) = pkce::random() else { return unwell() };
        let mut all = self.sign_ins.lock().unpoisoned();
        let Some((sign_in, cookie)) = all.bind(ticket, &secret, is_secure) else { return used_up() };
        if !is_holder {
            return Page::Ask { html: question(sign_in), cookie };
        }
        let own = cookie.split(';').next().unwrap_or_default().to_owned();
        let url = all.open(ticket, &own, is_secure);
        drop(all);
        self.sent_on(url, Some(cookie))
    }

    /// The answer to a person who goes on from the page of a ticket.
    #[must_use]
    pub fn confirm(&self, ticket: &str, place: Place, cookies: &str) -> Page {
        if self.holder(ticket, place).is_none() {
            return used_up();
        }
        let url = self.sign_ins.lock().unpoisoned().open(ticket, cookies, self.pages.is_secure(place));
        self.sent_on(url, None)
    }

    fn sent_on(&self, url: Option<String>, cookie: Option<String>) -> Page {
        let Some(url) = url else { return used_up() };
        self.moves.send_modify(|count| *count += 1);
        Page::Redirect { url, cookie }
    }

    /// The page that a browser with these cookies comes back to.
    pub async fn callback(&self, query: Vec<(String, String)>, place: Place, cookies: &str) -> Page {
        let state = query.iter().find(|(name, _)| name == "state").map_or("", |(_, value)| value.as_str());
        let taken = match self.returning(state, place) {
            Some(_) => self.sign_ins.lock().unpoisoned().take(state, cookies, self.pages.is_secure(place)),
            None => Err(NotReturned::Unknown),
        };
        if taken.as_ref().is_err_and(|why| *why == NotReturned::OtherBrowser) {
            let text = "This sign-in was begun in another browser, and can be completed only there.";
            return Page::Text { status: 403, text: text.to_owned() };
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
        self.tell(&ended);
        match &outcome {
            Ok(()) => {
                tracing::info!(%backend, "somebody signed in at the backend");
                Page::Text { status: 200, text: "You are signed in. You can close this window.".to_owned() }
            }
            Err(error) => {
                tracing::warn!(%backend, %error, "a sign-in at a backend failed");
                Page::Text { status: 400, text: format!("The sign-in failed: {error}.") }
            }
        }
    }

    fn tell(&self, ended: &EndedSignIn<'_>) {
        self.moves.send_modify(|count| *count += 1);
        if let Some(told) = self.signed_in.get() {
            told(ended);
        }
    }

    /// Exchanges the code that a browser brought for a token.
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
        // Its principal may have been removed meanwhile.
        if !self.sign_ins.lock().unpoisoned().has(sign_in) {
            return Err(OauthError::NotOurs);
        }
        self.keep(&sign_in.holder, token).await
    }
}

/// Asks a person whether a caller may use a backend with the person's account.
fn question(sign_in: &SignIn) -> String {
    let holder = &sign_in.holder;
    let backend = escaped(&holder.backend);
    let who = match holder.subject == EVERYBODY {
        true => "every caller of this gateway".to_owned(),
        false => format!("<b>{}</b>", escaped(&holder.subject)),
    };
    let body = format!(
        "<h1>Sign in at {backend}?</h1><p>You are about to let {who} use <b>{backend}</b> with your account at <b>{}</b>. \
         What is done there counts as done by you.</p><p>Go on only if you asked for this yourself just now. If somebody sent you this \
         address, close the page.</p><form method=\"post\"><button>Go on</button></form>",
        escaped(&sign_in.found.server.issuer),
    );
    document("Sign in at a backend", &body)
}

fn used_up() -> Page {
    let text = "This address was used already, or it is too old. Try again what led here, to get a new one.";
    Page::Text { status: 404, text: text.to_owned() }
}

fn unwell() -> Page {
    Page::Text { status: 500, text: "The system gives no randomness.".to_owned() }
}
