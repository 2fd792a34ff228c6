//! OAuth tokens for one backend: sent while they are fresh, refreshed before they expire, and replaced when the backend
//! refuses them.

use crate::challenge::AuthChallenge;
use crate::client_identity::ClientIdentity;
use crate::discovery::ServerMetadata;
use crate::discovery::{self, DiscoveredServer};
use crate::error::OauthError;
use crate::exchanged_tokens::ExchangedTokens;
use crate::oauth_client_state::{CALLBACK, OauthClientState};
use crate::private_key::now;
use crate::secret_source::SecretSource;
use crate::secret_text::SecretText;
use crate::sign_in::{SignIn, TokenHolder};
use crate::spec::{ExchangeSpec, GrantType, OauthSpec};
use crate::token_exchange::{self, token_endpoint};
use crate::token_request::{TokenContext, TokenSet};
use crate::web_address::{WebAddress, canonical};
use http::header::{AUTHORIZATION, HeaderValue};
use signalbox_engine::{BackendUser, Fault, FaultKind, Principal};
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials, BoxFuture, RequestIdentity, RequestSender};
use signalbox_transport::web_client::DialGuard as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Subject of a token that all callers share.
pub const SHARED_SUBJECT: &str = "*";
/// Scope that requests a refresh token, where the authorization server supports it.
const OFFLINE: &str = "offline_access";
/// Minimum age of a refused token before it is replaced, in seconds. A newer one would be refused too.
const TOO_SOON: u64 = 10;

/// OAuth client for one backend.
pub struct OauthCredentials(Arc<Inner>);

struct Inner {
    backend: Arc<str>,
    /// URL of the backend, with http or https.
    url: String,
    spec: OauthSpec,
    oauth: Arc<OauthClientState>,
    /// Exchanged tokens, which are kept in memory only.
    exchanged: ExchangedTokens,
}

/// Outcome of an attempt to get a token.
enum Renewal {
    Token(TokenSet),
    /// A person has to open this URL.
    Ask(String),
    /// No token would change the refusal.
    Nothing,
}

impl OauthCredentials {
    /// Creates the client for the backend at this URL.
    #[must_use]
    pub fn new(backend: &str, url: &str, spec: OauthSpec, oauth: Arc<OauthClientState>) -> Self {
        let url = match url.strip_prefix("ws") {
            Some(rest) => format!("http{rest}"),
            None => url.to_owned(),
        };
        if let GrantType::TokenExchange(ExchangeSpec { from_caller: true, .. })
        | GrantType::Enterprise(ExchangeSpec { from_caller: true, .. }) = &spec.grant
        {
            oauth.callers.want();
        }
        Self(Arc::new(Inner { backend: backend.into(), url, spec, oauth, exchanged: ExchangedTokens::default() }))
    }

    /// Returns the URL at which a person signs in for this principal. `challenges` are those of the server, if known.
    ///
    /// # Errors
    /// If the backend does not use sign-ins by people, or cannot be used.
    pub async fn sign_in_url(&self, whose: &Principal, challenges: &[String]) -> Result<String, OauthError> {
        let inner = &self.0;
        let holder = inner.holder(Some(whose))?;
        let challenge = AuthChallenge::bearer(challenges);
        let found = inner.discover(challenge.as_ref()).await?;
        let scopes = inner.scopes(&holder, challenge.as_ref(), &found, None).await?;
        inner.ask(&holder, found, scopes).await
    }

    /// Returns the holder of this principal's tokens.
    ///
    /// # Errors
    /// Never for a principal.
    pub fn holder(&self, whose: &Principal) -> Result<TokenHolder, OauthError> {
        self.0.holder(Some(whose))
    }
}

impl Inner {
    fn holder(&self, whose: Option<&Principal>) -> Result<TokenHolder, OauthError> {
        let subject = match (self.spec.per_user, whose) {
            (false, _) => SHARED_SUBJECT,
            (true, Some(whose)) => whose.as_str(),
            (true, None) => return Err(OauthError::NoSubject),
        };
        Ok(TokenHolder { backend: self.backend.to_string(), subject: subject.to_owned() })
    }

    /// Returns true if a token is for the server at our URL. The name of the backend may have belonged to another
    /// server before.
    fn is_for_us(&self, token: &TokenSet) -> bool {
        match &self.spec.resource {
            Some(resource) => *resource == token.resource,
            None => WebAddress::read(&token.resource)
                .zip(WebAddress::read(&self.url))
                .is_some_and(|(resource, url)| resource.holds(&url)),
        }
    }

    /// Returns true if the tokens of callers are exchanged.
    fn is_from_caller(&self) -> bool {
        match &self.spec.grant {
            GrantType::TokenExchange(spec) | GrantType::Enterprise(spec) => spec.from_caller,
            _ => false,
        }
    }

    /// Returns the token of the caller; for requests of the gateway itself, such as lists, that of the user the
    /// connection was opened for. A caller without a token never uses the token of another caller of its principal.
    fn subject_token(whose: &RequestIdentity) -> Result<SecretText, OauthError> {
        let credential = match &whose.asker {
            RequestSender::Caller(caller) => {
                caller.identity().standing.as_ref().and_then(|standing| standing.credential.as_ref())
            }
            RequestSender::Gateway => whose.user.as_ref().and_then(BackendUser::credential),
            RequestSender::Gone => None,
        };
        let good = credential.filter(|credential| credential.fault(unix_millis()).is_none());
        let token = good.and_then(|credential| credential.token.as_ref());
        token.map(|token| SecretText::new(token.expose())).ok_or(OauthError::NoSubject)
    }

    /// Returns the token to send now. `None` if the request is to be tried without one.
    async fn current(&self, whose: &RequestIdentity) -> Result<Option<TokenSet>, OauthError> {
        if self.is_from_caller() {
            return Ok(self.exchanged.get(&Self::subject_token(whose)?, now()));
        }
        let holder = self.holder(whose.principal())?;
        match self.oauth.token(&holder).await?.filter(|token| self.is_for_us(token)) {
            Some(token) if token.is_fresh(now()) => return Ok(Some(token)),
            None => return Ok(None),
            Some(_) => {}
        }
        let turn = self.oauth.turn(&holder);
        let _turn = turn.lock().await;
        let kept = self.oauth.token_in_store(&holder).await?.filter(|token| self.is_for_us(token));
        let Some(token) = kept else { return Ok(None) };
        if token.is_fresh(now()) {
            return Ok(Some(token));
        }
        match self.refresh(&holder, &token).await {
            Ok(Some(token)) => Ok(Some(token)),
            Ok(None) => Ok(Some(token).filter(|token| !token.is_over(now()))),
            Err(error) => {
                tracing::warn!(backend = %self.backend, %error, "a token could not be refreshed");
                Ok(Some(token).filter(|token| !token.is_over(now())))
            }
        }
    }

    /// Refreshes a token, if it has a refresh token.
    async fn refresh(&self, holder: &TokenHolder, token: &TokenSet) -> Result<Option<TokenSet>, OauthError> {
        let Some(refresh) = &token.refresh else { return Ok(None) };
        let Some(client) = self.known_client(token).await? else { return Ok(None) };
        let context = TokenContext {
            client: &client,
            token_endpoint: &token.token_endpoint,
            resource: &token.resource,
            takes_resource: self.spec.provider.takes_resource(),
            scopes: &token.scopes,
        };
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        let mut new = context.ask(&self.oauth.outbound, &grant).await?;
        new.refresh = new.refresh.or_else(|| token.refresh.clone());
        self.oauth.keep(holder, new.clone()).await?;
        Ok(Some(new))
    }

    /// Returns the client that a token was issued to.
    async fn known_client(&self, token: &TokenSet) -> Result<Option<ClientIdentity>, OauthError> {
        let server = ServerMetadata { issuer: token.issuer.clone(), ..ServerMetadata::default() };
        if let Some(spec) = &self.spec.client {
            let client = ClientIdentity::configured(spec, &server, "").await?;
            return Ok(
                Some(ClientIdentity { auth: token.client_auth, ..client }).filter(|own| own.id == token.client_id)
            );
        }
        if let Some(client) = self.oauth.kept_client(token).await? {
            return Ok(Some(client));
        }
        let reads = ServerMetadata { client_id_metadata_document_supported: true, ..server };
        let client = ClientIdentity::by_document(&self.oauth.outbound, &reads, "");
        Ok(client.filter(|client| client.id == token.client_id))
    }

    /// Returns another token after the backend refused a request.
    async fn renewed(&self, whose: &RequestIdentity, refusal: AuthRefusal) -> Result<Renewal, OauthError> {
        let challenge = AuthChallenge::bearer(&refusal.challenges);
        let challenge = challenge.as_ref();
        let lacks_scope = challenge.and_then(|challenge| challenge.param("error")) == Some("insufficient_scope");
        if refusal.status == 403 && !lacks_scope {
            return Ok(Renewal::Nothing);
        }
        let holder = self.holder(whose.principal())?;
        if self.is_from_caller() {
            return self.exchange_again(whose, &holder, &refusal, challenge).await;
        }
        let whose = whose.principal();
        // Wait before taking the turn, which the end of a sign-in needs too.
        self.oauth.wait_for_browser(&holder).await;
        let turn = self.oauth.turn(&holder);
        let _turn = turn.lock().await;
        let kept = self.oauth.token_in_store(&holder).await?.filter(|token| self.is_for_us(token));
        if let Some(token) = &kept
            && refusal.used.as_ref() != Some(&credential(token))
            && !token.is_over(now())
        {
            return Ok(Renewal::Token(token.clone()));
        }
        let found = self.discover(challenge).await?;
        // A token belongs to one issuer and one server. If these have changed, it is useless.
        let kept = kept.filter(|token| token.issuer == found.server.issuer && token.resource == found.resource);
        let wanted = challenge.map(AuthChallenge::scopes).unwrap_or_default();
        if let Some(token) = &kept {
            let had = wanted.iter().all(|scope| token.scopes.contains(scope));
            if lacks_scope && had {
                return Ok(Renewal::Nothing);
            }
            if !lacks_scope && let Ok(Some(token)) = self.refresh(&holder, token).await {
                return Ok(Renewal::Token(token));
            }
        }
        let scopes = self.scopes(&holder, challenge, &found, kept.as_ref().filter(|_| lacks_scope)).await?;
        let token = match &self.spec.grant {
            GrantType::SignIn => {
                self.oauth.want(&holder, &scopes).await?;
                return self.ask(&holder, found, scopes).await.map(Renewal::Ask);
            }
            _ if !lacks_scope && kept.is_some_and(|token| now() < token.given + TOO_SOON) => {
                return Ok(Renewal::Nothing);
            }
            GrantType::ClientCredentials => self.client_credentials(&found, &scopes).await?,
            GrantType::TokenExchange(spec) => {
                let subject = subject(spec.shared.as_ref(), &spec.users, whose).await?;
                self.exchange(spec, &subject, &found, &scopes).await?
            }
            GrantType::JwtBearer(spec) => {
                let client = self.own_client(&found).await?;
                let assertion = subject(spec.shared.as_ref(), &spec.users, whose).await?;
                let outbound = &self.oauth.outbound;
                token_exchange::jwt_bearer(outbound, &client, &assertion, &found, &scopes).await?
            }
            GrantType::Enterprise(spec) => {
                let subject = subject(spec.shared.as_ref(), &spec.users, whose).await?;
                self.enterprise(spec, &subject, &found, &scopes).await?
            }
        };
        self.oauth.keep(&holder, token.clone()).await?;
        Ok(Renewal::Token(token))
    }

    /// Exchanges the caller's token again after the backend refused a request.
    async fn exchange_again(
        &self,
        whose: &RequestIdentity,
        holder: &TokenHolder,
        refusal: &AuthRefusal,
        challenge: Option<&AuthChallenge>,
    ) -> Result<Renewal, OauthError> {
        let lacks_scope = challenge.and_then(|one| one.param("error")) == Some("insufficient_scope");
        let subject = Self::subject_token(whose)?;
        let turn = self.oauth.turn(holder);
        let _turn = turn.lock().await;
        let kept = self.exchanged.get(&subject, now());
        if let Some(token) = kept.as_ref().filter(|token| refusal.used.as_ref() != Some(&credential(token))) {
            return Ok(Renewal::Token(token.clone()));
        }
        let found = self.discover(challenge).await?;
        let wanted = challenge.map(AuthChallenge::scopes).unwrap_or_default();
        let had = |token: &TokenSet| wanted.iter().all(|scope| token.scopes.contains(scope));
        let is_fresh = |token: &TokenSet| now() < token.given + TOO_SOON;
        if kept.as_ref().is_some_and(|token| if lacks_scope { had(token) } else { is_fresh(token) }) {
            return Ok(Renewal::Nothing);
        }
        let scopes = self.scopes(holder, challenge, &found, kept.as_ref().filter(|_| lacks_scope)).await?;
        let token = match &self.spec.grant {
            GrantType::TokenExchange(spec) => self.exchange(spec, &subject, &found, &scopes).await?,
            GrantType::Enterprise(spec) => self.enterprise(spec, &subject, &found, &scopes).await?,
            GrantType::SignIn | GrantType::ClientCredentials | GrantType::JwtBearer(_) => return Ok(Renewal::Nothing),
        };
        self.exchanged.keep(&subject, token.clone(), now());
        Ok(Renewal::Token(token))
    }

    /// Returns the authorization server for the backend's tokens.
    async fn discover(&self, challenge: Option<&AuthChallenge>) -> Result<DiscoveredServer, OauthError> {
        let own = || self.spec.resource.clone().or_else(|| canonical(&self.url)).ok_or(OauthError::NoServer);
        if let GrantType::TokenExchange(spec) = &self.spec.grant {
            // The exchange endpoint is configured, so no discovery is needed.
            let issuer = self.spec.issuer.clone().unwrap_or_else(|| spec.url.clone());
            let server = ServerMetadata { issuer, token_endpoint: Some(spec.url.clone()), ..ServerMetadata::default() };
            return Ok(DiscoveredServer { resource: own()?, scopes: Vec::new(), server });
        }
        let hint = challenge.and_then(|challenge| challenge.param("resource_metadata"));
        let mut wanted = self.spec.issuer.clone();
        // A configured client is registered at one issuer. Its credentials go to no other.
        if wanted.is_none() && self.spec.client.is_some() {
            wanted = self.oauth.vault.read().await?.issuers.get(&*self.backend).cloned();
        }
        let mut found = discovery::discover(&self.oauth.outbound, &self.url, hint, wanted.as_deref()).await?;
        if let Some(resource) = &self.spec.resource {
            found.resource.clone_from(resource);
        }
        Ok(found)
    }

    /// Returns the scopes to request: those of the challenge, otherwise all that the server supports; in a step-up,
    /// also the previous ones.
    async fn scopes(
        &self,
        holder: &TokenHolder,
        challenge: Option<&AuthChallenge>,
        found: &DiscoveredServer,
        before: Option<&TokenSet>,
    ) -> Result<Vec<String>, OauthError> {
        let mut scopes = challenge.map(AuthChallenge::scopes).unwrap_or_default();
        if scopes.is_empty() {
            let kept = self.oauth.vault.read().await?;
            let wanted = kept.wanted.get(&holder.backend).and_then(|all| all.get(&holder.subject)).cloned();
            scopes = wanted.unwrap_or_else(|| found.scopes.clone());
        }
        let more = before.map(|token| token.scopes.clone()).unwrap_or_default();
        let offline = found.server.scopes_supported.iter().filter(|scope| *scope == OFFLINE);
        let offline: Vec<String> = offline.filter(|_| self.spec.grant == GrantType::SignIn).cloned().collect();
        for scope in self.spec.scopes.iter().chain(&more).chain(&offline) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Ok(scopes)
    }

    /// Begins a sign-in and returns the URL for the person.
    async fn ask(
        &self,
        holder: &TokenHolder,
        found: DiscoveredServer,
        scopes: Vec<String>,
    ) -> Result<String, OauthError> {
        let base = self.oauth.base(holder).await?;
        let redirect = format!("{base}{CALLBACK}");
        let client = self.oauth.client(self.spec.client.as_ref(), &found.server, &redirect, &scopes).await?;
        let endpoint = found.server.authorization_endpoint.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
        let plain = endpoint.as_ref().is_some_and(|url| url.scheme_str() != Some("https"));
        let host = endpoint.as_ref().and_then(http::Uri::host).unwrap_or_default();
        if plain && !self.oauth.outbound.may_be_plain(host.trim_matches(['[', ']'])) {
            return Err(OauthError::BadMetadata("people would sign in without TLS"));
        }
        let takes_resource = self.spec.provider.takes_resource();
        let sign_in = SignIn::begin(holder.clone(), client, found, scopes, takes_resource)?;
        Ok(self.oauth.add_sign_in(&base, sign_in))
    }

    async fn client_credentials(&self, found: &DiscoveredServer, scopes: &[String]) -> Result<TokenSet, OauthError> {
        let client = self.own_client(found).await?;
        let scope = scopes.join(" ");
        let mut grant = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            grant.push(("scope", &scope));
        }
        self.context(&client, found, scopes)?.ask(&self.oauth.outbound, &grant).await
    }

    /// Returns the configured client at the backend's authorization server.
    async fn own_client(&self, found: &DiscoveredServer) -> Result<ClientIdentity, OauthError> {
        let spec = self.spec.client.as_ref().ok_or(OauthError::NoClient)?;
        ClientIdentity::configured(spec, &found.server, "").await
    }

    async fn exchange(
        &self,
        spec: &ExchangeSpec,
        subject: &SecretText,
        found: &DiscoveredServer,
        scopes: &[String],
    ) -> Result<TokenSet, OauthError> {
        let client = spec.client.as_ref().or(self.spec.client.as_ref()).ok_or(OauthError::NoClient)?;
        let client = ClientIdentity::configured(client, &found.server, "").await?;
        token_exchange::exchange(&self.oauth.outbound, spec, subject, &self.context(&client, found, scopes)?).await
    }

    async fn enterprise(
        &self,
        spec: &ExchangeSpec,
        subject: &SecretText,
        found: &DiscoveredServer,
        scopes: &[String],
    ) -> Result<TokenSet, OauthError> {
        let own = self.spec.client.as_ref().ok_or(OauthError::NoClient)?;
        let at_server = ClientIdentity::configured(own, &found.server, "").await?;
        let provider = ServerMetadata { issuer: spec.url.clone(), ..ServerMetadata::default() };
        let at_provider = ClientIdentity::configured(spec.client.as_ref().unwrap_or(own), &provider, "").await?;

        token_exchange::enterprise(&self.oauth.outbound, spec, &at_provider, &at_server, subject, found, scopes).await
    }

    fn context<'a>(
        &self,
        client: &'a ClientIdentity,
        found: &'a DiscoveredServer,
        scopes: &'a [String],
    ) -> Result<TokenContext<'a>, OauthError> {
        Ok(TokenContext {
            client,
            token_endpoint: token_endpoint(&found.server)?,
            resource: &found.resource,
            takes_resource: self.spec.provider.takes_resource(),
            scopes,
        })
    }

    fn fault(&self, error: &OauthError) -> Fault {
        let text = format!("there is no credential for backend `{}`: {error}", self.backend);
        // A missing or rejected caller token is the caller's fault, not a sign that the backend is down.
        let kind = match error {
            OauthError::NoSubject => FaultKind::Refused,
            OauthError::Refused { .. } if self.is_from_caller() => FaultKind::Refused,
            _ => FaultKind::BackendDown,
        };
        Fault::new(kind, text).with_str("backend", &self.backend)
    }

    fn sign_in_needed(&self, url: &str) -> Fault {
        let text = format!("backend `{}` wants you to sign in: open {url}", self.backend);
        Fault::new(FaultKind::SignInNeeded, text).with_str("backend", &self.backend).with_str("url", url)
    }
}

/// Returns the token to exchange for this caller.
async fn subject(
    shared: Option<&SecretSource>,
    users: &BTreeMap<String, SecretSource>,
    whose: Option<&Principal>,
) -> Result<SecretText, OauthError> {
    let own = whose.and_then(|whose| users.get(whose.as_str()));
    Ok(own.or(shared).ok_or(OauthError::NoSubject)?.read().await?)
}

/// Builds the header of a token, which consists of visible ASCII characters.
fn credential(token: &TokenSet) -> AuthHeader {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.access.expose()));
    AuthHeader::new(AUTHORIZATION, value.unwrap_or_else(|_| HeaderValue::from_static("Bearer")))
}

impl BackendCredentials for OauthCredentials {
    fn is_per_user(&self) -> bool {
        self.0.spec.per_user
    }

    fn is_own(&self) -> bool {
        self.0.spec.is_own()
    }

    fn is_per_caller(&self) -> bool {
        self.0.is_from_caller()
    }

    fn current(&self, whose: RequestIdentity) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let token = inner.current(&whose).await.map_err(|error| inner.fault(&error))?;
            Ok(token.as_ref().map(credential))
        })
    }

    fn sign_in_end(&self, user: &BackendUser, agreed: bool) -> Option<BoxFuture<()>> {
        let holder = self.0.holder(Some(user.principal())).ok()?;
        let oauth = Arc::clone(&self.0.oauth);
        oauth
            .is_awaited(&holder, agreed)
            .then(|| -> BoxFuture<()> { Box::pin(async move { oauth.wait_for_end(&holder, agreed).await }) })
    }

    fn renewed(&self, whose: RequestIdentity, refusal: AuthRefusal) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match inner.renewed(&whose, refusal).await {
                Ok(Renewal::Token(token)) => Ok(Some(credential(&token))),
                Ok(Renewal::Nothing) => Ok(None),
                Ok(Renewal::Ask(url)) => Err(inner.sign_in_needed(&url)),
                Err(error) => Err(inner.fault(&error)),
            }
        })
    }
}
