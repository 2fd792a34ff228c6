//! Runs the authorization server of the gateway: its files, its password hashes, and the client documents that it
//! fetches. `signalbox_oauth_server` makes the decisions.
//!
//! ```text
//! data folder: auth/server.key   signs tokens          auth/server.json  clients, grants, revoked tokens
//!              auth/users.json   who can sign in       auth/server.lock  one process at a time
//! ```

use crate::auth_file::{FOLDER, FileStamp};
use crate::openid::OpenId;
use crate::signing_keys::SigningKeys;
use crate::user_file::{UserFile, UserFileFault};
use arc_swap::{ArcSwap, ArcSwapOption};
use signalbox_config::Auth;
use signalbox_config::auth_server::{AuthServer, LOCAL_USERS};
use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::resource_address::ResourceAddress;
use signalbox_engine::standing::Standing;
use signalbox_govern::directory::{Directory, DirectoryClaims};
use signalbox_govern::{IssuerRules, JsonWebKeySet, JsonWebKeySetError, TokenAuthenticator, TokenIssuer};
use signalbox_oauth_client::openid::OpenIdResponse;
use signalbox_oauth_client::outbound::OutboundSettings;
use signalbox_oauth_client::web_address::WebAddress;
use signalbox_oauth_server::access_token::BadSeed;
use signalbox_oauth_server::{
    AuthorizationServer, Authorize, ConsentOutcome, DocumentError, IdentityProvider, Moment, OauthRefusal, Reply,
    ServerSettings, ServerStateError, SignInStep, SwitchedOff,
};
use signalbox_runtime::clock::unix_millis;
use signalbox_seal::KeyError;
use signalbox_seal::keys::files::{KeyStorageError, save_private, try_lock};
use signalbox_wire::timestamp;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;

/// Maximum number of concurrent password checks. Each takes 19 MiB and a core.
const HASHES: usize = 2;
/// Time that a password check may wait for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Reason why the server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthServerError {
    /// Another process runs the server of this data folder.
    #[error(
        "auth.server: another gateway runs the authorization server of this data folder; give one of them another `gateway.data_dir`"
    )]
    Taken,
    /// The configuration gives no address for the server.
    #[error("auth.server: set `issuer` or `auth.resource` to the https address under which clients reach the gateway")]
    NoIssuer,
    /// A file cannot be used.
    #[error("auth.server: {}: {why}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The saved state is damaged.
    #[error("auth.server: {}: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Damage that was found.
        why: ServerStateError,
    },
    /// The users cannot be read.
    #[error(transparent)]
    Users(#[from] UserFileFault),
    /// The key file cannot be read or written.
    #[error(transparent)]
    File(#[from] KeyStorageError),
    /// The key cannot be generated.
    #[error("auth.server: {0}")]
    Key(#[from] KeyError),
    /// The key file does not hold a signing key.
    #[error("auth.server: {0}")]
    Seed(#[from] BadSeed),
    /// The public key is unusable for verification.
    #[error("auth.server: {0}")]
    KeySet(#[from] JsonWebKeySetError),
}

/// Person who has signed in in a browser to visit a page of the gateway.
pub struct BrowserUser {
    /// Name of the user, with the prefix of local users.
    pub principal: String,
    /// Roles, groups and trust of the user.
    pub standing: Arc<Standing>,
}

pub struct Authorization {
    server: Arc<AuthorizationServer>,
    issuer: Arc<TokenIssuer>,
    signing: SigningKeys,
    /// True if the last attempt to renew the key failed, so that a failure is logged once. The lock also serialises
    /// renewals.
    stuck: Mutex<bool>,
    tokens: ArcSwapOption<TokenAuthenticator>,
    directory: Arc<ArcSwap<Directory>>,
    outbound: OutboundSettings,
    openid: Option<OpenId>,
    hashing: Semaphore,
    users: UserFile,
    stamp: Mutex<Option<FileStamp>>,
    /// Local users whose accounts are gone, until the gateway has dropped their sessions.
    gone: Mutex<Vec<Principal>>,
    store: PathBuf,
    /// Serialises writes of the file, so that the newest state is written last.
    writing: tokio::sync::Mutex<()>,
    _lock: File,
}

impl Authorization {
    /// Loads the server's keys, users and state for this resource.
    ///
    /// # Errors
    /// If a file cannot be used, or another process holds the lock of the data folder.
    pub fn load(
        auth: &Auth,
        server: &AuthServer,
        data_dir: &Path,
        resource: &ResourceAddress,
        directory: &Arc<ArcSwap<Directory>>,
        outbound: &OutboundSettings,
    ) -> Result<Self, AuthServerError> {
        let folder = data_dir.join(FOLDER);
        let settings = settings(auth, server, resource)?;
        let openid = server.openid.as_ref().map(|provider| OpenId::new(provider, &settings.issuer));
        let held = hold(&folder.join("server.lock"))?;
        let signing = SigningKeys::of(&folder, server);
        let signer = signing.load(SystemTime::now())?;
        let rules = rules(&settings);
        let keys = JsonWebKeySet::parse(&signer.key_set().to_string(), &rules.algorithms)?;
        let store = folder.join("server.json");
        let kept = match std::fs::read_to_string(&store) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
            other => other.map_err(|why| AuthServerError::Io { path: store.clone(), why })?,
        };
        let users = UserFile::of(data_dir);
        let stamp = Mutex::new(users.stamp());
        let known = users.load()?;
        if openid.is_none() && known.iter().next().is_none() {
            tracing::warn!("the authorization server has no users; `signalbox users add NAME` adds one");
        }
        let server = AuthorizationServer::new(settings, signer, &kept, known)
            .map_err(|why| AuthServerError::Damaged { path: store.clone(), why })?;
        let this = Self {
            server: Arc::new(server),
            issuer: Arc::new(TokenIssuer::new(rules, keys)),
            signing,
            stuck: Mutex::default(),
            tokens: ArcSwapOption::empty(),
            directory: Arc::clone(directory),
            outbound: outbound.clone(),
            openid,
            hashing: Semaphore::new(HASHES),
            users,
            stamp,
            gone: Mutex::default(),
            store,
            writing: tokio::sync::Mutex::new(()),
            _lock: held,
        };
        this.withdraw();
        if let Some(text) =
            this.server.unsaved().map_err(|why| AuthServerError::Damaged { path: this.store.clone(), why })?
        {
            tracing::info!("ended the grants of users who left since the last start");
            save_private(&this.store, text.as_bytes())?;
        }
        Ok(this)
    }

    /// Returns the issuer URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.server.settings().issuer
    }

    /// Returns the server as an issuer of tokens.
    pub(crate) fn issuer(&self) -> &Arc<TokenIssuer> {
        &self.issuer
    }

    /// Sets the authenticator that verifies the server's tokens and must be told of revocations.
    pub(crate) fn verified_by(&self, tokens: &Arc<TokenAuthenticator>) {
        self.tokens.store(Some(Arc::clone(tokens)));
    }

    /// Returns the metadata of RFC 8414.
    #[must_use]
    pub fn metadata(&self) -> Reply {
        self.server.metadata()
    }

    /// Returns the public keys, after a renewal that is due.
    #[must_use]
    pub fn key_set(&self) -> Reply {
        self.renew_key();
        self.server.key_set()
    }

    /// Handles an authorization request, which a client sends by a browser.
    pub async fn authorize(&self, query: &str, address: Option<IpAddr>) -> Reply {
        let Some(moment) = moment() else { return unwell() };
        let url = match self.server.authorize(query, address, &moment) {
            Authorize::Reply(reply) => return reply,
            Authorize::Document(url) => url,
        };
        let document = match self.outbound.get(&url).await {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) => Err(DocumentError::Status(answer.status)),
            Err(error) => Err(DocumentError::Unreachable(error.to_string())),
        };
        if let Err(error) = &document {
            tracing::warn!(%error, client = url, "the metadata document of a client cannot be read");
        }
        self.server.learn(&url, document.as_deref().map_err(Clone::clone), moment.now);
        match self.server.authorize(query, address, &moment) {
            Authorize::Reply(reply) => reply,
            Authorize::Document(_) => unwell(),
        }
    }

    /// Handles the form with a person's name and password.
    pub async fn sign_in(&self, form: &str, cookies: &str, address: Option<IpAddr>, off: SwitchedOff<'_>) -> Reply {
        self.refresh_users();
        let Some(moment) = moment() else { return unwell() };
        let signed_in = match self.server.sign_in(form, cookies, address, &moment) {
            SignInStep::Reply(reply) => return reply,
            SignInStep::Check(signed_in) => signed_in,
        };
        let Ok(Ok(turn)) = tokio::time::timeout(TURN, self.hashing.acquire()).await else {
            return self.server.busy(&signed_in);
        };
        let checked = tokio::task::spawn_blocking(move || {
            let is_good = signed_in.check.is_good();
            (signed_in, is_good)
        });
        let checked = checked.await;
        drop(turn);
        let Ok((signed_in, is_good)) = checked else { return unwell() };
        self.refresh_users();
        let address = address.map(tracing::field::display);
        // Log no name of a failed attempt: it may be a password typed into the wrong field.
        match is_good {
            true => tracing::info!(user = signed_in.user(), address, "signed in at the authorization server"),
            false => tracing::warn!(address, "a sign-in at the authorization server failed"),
        }
        self.server.checked(&signed_in, is_good, off, unix_millis())
    }

    /// Sends a visitor to sign in and then back to this path of the gateway.
    #[must_use]
    pub fn visit(&self, path: &str, is_other: bool, address: Option<IpAddr>) -> Reply {
        moment().map_or_else(unwell, |moment| self.server.visit(path, is_other, address, &moment))
    }

    /// Returns the people who have signed in in this browser to visit a page of the gateway.
    #[must_use]
    pub fn visitors(&self, cookies: &str) -> Vec<BrowserUser> {
        self.refresh_users();
        let visitor = |user: String| {
            let principal = format!("{LOCAL_USERS}:{user}");
            let standing = self.directory.load().standing(&principal, DirectoryClaims::default(), None);
            BrowserUser { principal, standing }
        };
        self.server.visitors(cookies, unix_millis()).into_iter().map(visitor).collect()
    }

    /// Returns `true` if a local user of this name can sign in here.
    #[must_use]
    pub fn has_user(&self, name: &str) -> bool {
        self.refresh_users();
        self.server.has_user(name)
    }

    /// Handles a person's answer to the consent page.
    pub async fn consent(&self, form: &str, cookies: &str, off: SwitchedOff<'_>) -> Reply {
        self.refresh_users();
        let Some(moment) = moment() else { return unwell() };
        let ticket = match (self.server.consent(form, cookies, off, &moment), &self.openid) {
            (ConsentOutcome::Reply(reply), _) => return reply,
            (ConsentOutcome::Forward(_), None) => return unwell(),
            (ConsentOutcome::Forward(ticket), Some(_)) => ticket,
        };
        let Some(openid) = &self.openid else { return unwell() };
        match openid.begin(&self.outbound, &ticket, &moment).await {
            Ok(url) => self.server.forward(&url),
            Err(error) => {
                tracing::warn!(%error, "people cannot sign in at the OpenID provider");
                self.server.returned(&ticket, None, off, &moment)
            }
        }
    }

    /// Handles a person's return from the OpenID provider.
    pub async fn openid(&self, query: &[(&str, &str)], cookies: &str, off: SwitchedOff<'_>) -> Reply {
        let (Some(openid), Some(moment)) = (&self.openid, moment()) else { return unwell() };
        let param = |name: &str| query.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let pending = param("state").and_then(|state| openid.take(state, moment.now));
        // Redeem a code only for the browser that was sent to the provider.
        let Some(pending) = pending.filter(|one| self.server.is_sent(&one.ticket, cookies, moment.now)) else {
            return self.server.late();
        };
        let response = OpenIdResponse { code: param("code"), issuer: param("iss") };
        let person = openid.person(&self.outbound, &pending, response, moment.now).await;
        match &person {
            Ok(person) => tracing::info!(user = person.name, "signed in by the OpenID provider"),
            Err(error) => tracing::warn!(%error, "a sign-in by the OpenID provider failed"),
        }
        self.server.returned(&pending.ticket, person.ok(), off, &moment)
    }

    /// Handles a client's request for tokens.
    pub async fn token(&self, form: &str, off: SwitchedOff<'_>) -> Reply {
        self.refresh_users();
        self.renew_key();
        let Some(moment) = moment() else { return unwell() };
        let reply = self.server.token(form, off, &moment);
        self.settled(reply).await
    }

    /// Handles a client's registration of itself.
    pub async fn register(&self, body: &[u8], address: Option<IpAddr>) -> Reply {
        let Some(moment) = moment() else { return unwell() };
        let reply = self.server.register(body, address, &moment);
        self.settled(reply).await
    }

    /// Handles a client's revocation of a token.
    pub async fn revoke(&self, form: &str) -> Reply {
        let reply = self.server.revoke(form);
        self.settled(reply).await
    }

    /// Returns the local users whose accounts have gone since the last call.
    pub(crate) fn take_gone(&self) -> Vec<Principal> {
        std::mem::take(&mut *self.gone.lock().unpoisoned())
    }

    /// Returns `true` if this principal is a local user whose account was created after `than`.
    #[must_use]
    pub fn is_newer(&self, principal: &str, than: SystemTime) -> bool {
        let created = principal.strip_prefix("user:").and_then(|name| self.server.user_created(name));
        created.is_some_and(|created| created > timestamp::millis_of(than))
    }

    /// Reads the users again if their file has changed. An unreadable file changes nothing.
    pub(crate) fn refresh_users(&self) {
        let mut stamp = self.stamp.lock().unpoisoned();
        let now = self.users.stamp();
        if *stamp == now {
            return;
        }
        *stamp = now;
        match self.users.load() {
            Ok(users) => {
                let (ended, gone) = self.server.replace_users(users);
                let gone = gone.iter().map(|name| Principal::named(&format!("user:{name}")));
                self.gone.lock().unpoisoned().extend(gone);
                if ended > 0 {
                    tracing::info!(ended, "ended the grants of users who are gone");
                    self.withdraw();
                }
            }
            Err(error) => tracing::error!(%error, "keeping the users that were read before"),
        }
    }

    /// Ends the grants of people whose provider was removed or has another address. Returns their number.
    pub(crate) fn keep_provider(&self, issuer: Option<&str>) -> usize {
        let ended = self.server.keep_provider(issuer);
        if ended > 0 {
            self.withdraw();
        }
        ended
    }

    /// Replaces the signing key if it is due, and drops the former one once its tokens have expired.
    pub(crate) fn renew_key(&self) {
        let mut stuck = self.stuck.lock().unpoisoned();
        let renewed = self.signing.renewed(SystemTime::now()).and_then(|signer| {
            let Some(signer) = signer else { return Ok(()) };
            let keys = JsonWebKeySet::parse(&signer.key_set().to_string(), &self.issuer.rules.algorithms)?;
            self.issuer.replace_keys(keys);
            self.server.replace_signer(signer);
            if let Some(tokens) = &*self.tokens.load() {
                tokens.withdraw_keys(&self.issuer);
            }
            Ok(())
        });
        let was_stuck = std::mem::replace(&mut *stuck, renewed.is_err());
        if let Some(error) = renewed.err().filter(|_| !was_stuck) {
            tracing::error!(%error, "the authorization server goes on with the key that signed before");
        }
    }

    /// Revokes tokens at once, and answers the client only after the state has been saved.
    async fn settled(&self, reply: Reply) -> Reply {
        self.withdraw();
        if self.save().await { reply } else { unwell() }
    }

    /// Saves the state if it has changed. Returns `false` on failure, which the next call retries.
    pub(crate) async fn save(&self) -> bool {
        let _turn = self.writing.lock().await;
        let text = match self.server.unsaved() {
            Ok(None) => return true,
            Ok(Some(text)) => text,
            Err(error) => {
                tracing::error!(%error, "what the authorization server knows cannot be kept");
                return false;
            }
        };
        let path = self.store.clone();
        let written = tokio::task::spawn_blocking(move || save_private(&path, text.as_bytes())).await;
        if let Ok(Err(error)) = &written {
            tracing::error!(%error, "what the authorization server knows cannot be kept");
        }
        let saved = matches!(written, Ok(Ok(())));
        if !saved {
            self.server.not_saved();
        }
        saved
    }

    fn withdraw(&self) {
        self.issuer.replace_revoked(self.server.revoked().into_iter().map(|(id, _)| id).collect());
        if let Some(tokens) = &*self.tokens.load() {
            tokens.withdraw_ids(&self.issuer);
        }
    }
}

fn settings(auth: &Auth, server: &AuthServer, resource: &ResourceAddress) -> Result<ServerSettings, AuthServerError> {
    let origin = || WebAddress::read(resource.as_str()).map(|address| address.origin);
    let issuer = server.issuer.clone().or_else(origin).ok_or(AuthServerError::NoIssuer)?;
    let mut scopes = auth.required_scopes.clone();
    for (scope, _) in auth.scopes.iter().chain(&auth.scope_hierarchy) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    Ok(ServerSettings {
        issuer,
        resource: resource.clone(),
        scopes,
        default_scopes: auth.required_scopes.clone(),
        registration: server.registration,
        client_documents: server.client_documents,
        access_lifetime: server.access_lifetime,
        refresh_lifetime: server.refresh_lifetime,
        provider: server
            .openid
            .as_ref()
            .map(|provider| IdentityProvider { name: provider.name.clone(), issuer: provider.issuer.clone() }),
    })
}

/// Returns the rules for verifying the server's tokens. No clock skew is allowed, because both use the same clock.
fn rules(settings: &ServerSettings) -> IssuerRules {
    IssuerRules {
        name: LOCAL_USERS.to_owned(),
        issuer: settings.issuer.clone(),
        audiences: vec![settings.resource.as_str().to_owned()],
        algorithms: "EdDSA".parse().into_iter().collect(),
        skew: 0,
        subject_claim: "sub".to_owned(),
        role_claims: Vec::new(),
        group_claims: vec!["groups".to_owned()],
        require_id: true,
    }
}

/// Locks the server's files for this process.
fn hold(path: &Path) -> Result<File, AuthServerError> {
    try_lock(path)?.ok_or(AuthServerError::Taken)
}

fn moment() -> Option<Moment> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).ok()?;
    Some(Moment::new(unix_millis(), seed))
}

fn unwell() -> Reply {
    Reply::refusal(500, OauthRefusal::new("server_error", "the authorization server cannot answer; its log says more"))
}
