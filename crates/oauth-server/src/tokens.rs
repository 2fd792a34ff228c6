//! Token endpoint: codes, refresh tokens and revocation.

use crate::authorization_request::{AuthorizationRequest, Parameters, check_resource, is_unreserved};
use crate::event::AuthEvent;
use crate::grants::{Grant, Person};
use crate::moment::{Moment, hashed, same};
use crate::reply::{OauthRefusal, Reply};
use crate::server::{AuthorizationServer, Inner};
use crate::sign_in::SwitchedOff;
use serde_json::json;
use signalbox_oauth_client::pkce;
use std::collections::HashMap;

/// Lifetime of a code, in seconds.
const CODE_LIFETIME: u64 = 60;
/// Time a used code is remembered, in seconds, to detect its reuse.
const CODE_MEMORY: u64 = 600;
/// Maximum number of codes.
const MAX_CODES: usize = 10_000;

/// Issued codes, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Codes(HashMap<String, Code>);

#[derive(Debug)]
struct Code {
    given: u64,
    /// Request and person of the code; `None` once it is used.
    open: Option<(AuthorizationRequest, Person)>,
    /// Grant that it was used for.
    grant: Option<String>,
}

impl Codes {
    pub fn keep(&mut self, code: &str, asked: AuthorizationRequest, person: Person, moment: &Moment) {
        self.0.retain(|_, code| code.given.saturating_add(CODE_MEMORY * 1_000) > moment.now);
        if self.0.len() >= MAX_CODES {
            self.0.clear();
        }
        self.0.insert(hashed(code), Code { given: moment.now, open: Some((asked, person)), grant: None });
    }
}

const OFF: OauthRefusal = OauthRefusal::new("invalid_grant", "the user is switched off");
const BAD_CODE: OauthRefusal = OauthRefusal::new("invalid_grant", "the code is not good, or no longer");

impl AuthorizationServer {
    /// Handles a token request.
    pub fn token(&self, form: &str, off: SwitchedOff<'_>, moment: &Moment) -> Reply {
        let read = Parameters::read(form);
        let Some(parameters) = read else {
            return Reply::refusal(400, OauthRefusal::new("invalid_request", "the form cannot be read"));
        };
        let mut stopped = None;
        let mut off = |name: &str| {
            let is_off = off(name);
            stopped = is_off.then(|| name.to_owned());
            is_off
        };
        let done = check_resource(&parameters, &self.settings).and_then(|()| match parameters.get("grant_type") {
            Some("authorization_code") => self.redeem(&parameters, &mut off, moment),
            Some("refresh_token") => self.refresh(&parameters, &mut off, moment),
            None => Err(OauthRefusal::new("invalid_request", "grant_type is missing")),
            Some(_) => {
                Err(OauthRefusal::new("unsupported_grant_type", "only authorization_code and refresh_token are"))
            }
        });
        done.unwrap_or_else(|refusal| {
            Reply::refusal(400, refusal).with_client(parameters.get("client_id")).with_person(stopped)
        })
    }

    fn redeem(
        &self,
        parameters: &Parameters,
        off: &mut dyn FnMut(&str) -> bool,
        moment: &Moment,
    ) -> Result<Reply, OauthRefusal> {
        let missing = |why| OauthRefusal::new("invalid_request", why);
        let code = parameters.get("code").ok_or(missing("code is missing"))?;
        let client = parameters.get("client_id").ok_or(missing("client_id is missing"))?;
        let verifier = parameters.get("code_verifier").ok_or(missing("code_verifier is missing"))?;
        let mut inner = self.inner();
        let known = inner.codes.0.get_mut(&hashed(code)).ok_or(BAD_CODE)?;
        // The code is used up even if the request fails.
        let Some((asked, person)) = known.open.take() else {
            if let Some(grant) = known.grant.take() {
                inner.stored.end(&grant);
                inner.unsaved = true;
            }
            return Err(OauthRefusal::new(
                "invalid_grant",
                "the code was used before; all tokens of its grant are revoked",
            ));
        };
        if known.given.saturating_add(CODE_LIFETIME * 1_000) <= moment.now || asked.client.id != client {
            return Err(BAD_CODE);
        }
        let redirect = parameters.get("redirect_uri");
        if redirect.is_some_and(|uri| uri != asked.redirect_uri) || (asked.redirect_given && redirect.is_none()) {
            return Err(OauthRefusal::new("invalid_grant", "redirect_uri is not the one that the code was sent to"));
        }
        let fits = (43..=128).contains(&verifier.len()) && is_unreserved(verifier);
        if !fits || !same(&pkce::challenge(verifier), &asked.challenge) {
            return Err(OauthRefusal::new("invalid_grant", "code_verifier is not that of the challenge"));
        }
        if person.is_gone(&inner.users, inner.provider.as_deref()) {
            return Err(BAD_CODE);
        }
        if off(&person.name) {
            return Err(OFF);
        }
        let (grant, refresh) = inner.stored.open(client, person, asked.scopes.clone(), &self.settings, moment);
        if let Some(known) = inner.codes.0.get_mut(&hashed(code)) {
            known.grant = Some(grant.clone());
        }
        self.give(&mut inner, &grant, &refresh, &asked.scopes, moment)
    }

    fn refresh(
        &self,
        parameters: &Parameters,
        off: &mut dyn FnMut(&str) -> bool,
        moment: &Moment,
    ) -> Result<Reply, OauthRefusal> {
        let token = parameters.get("refresh_token");
        let token = token.ok_or(OauthRefusal::new("invalid_request", "refresh_token is missing"))?;
        let client = parameters.get("client_id").ok_or(OauthRefusal::new("invalid_request", "client_id is missing"))?;
        let mut inner = self.inner();
        // The grant stays, for the day on which the user is switched on again.
        if inner.stored.grant_of(token).is_some_and(|grant| off(&grant.user)) {
            return Err(OFF);
        }
        let before = inner.stored.grants.len();
        let rotated = inner.stored.rotate(token, client, &self.settings, moment);
        // A refusal may have ended a grant. Save only then, so that invented tokens do not cause writes.
        inner.unsaved |= inner.stored.grants.len() != before;
        let (grant, next) = rotated?;
        let Some(stored) = inner.stored.grants.get(&grant) else {
            return Err(BAD_CODE);
        };
        let scopes = match parameters.get("scope") {
            None => stored.scopes.clone(),
            Some(asked) => {
                let mut fewer: Vec<String> = asked.split_ascii_whitespace().map(str::to_owned).collect();
                fewer.retain(|scope| stored.scopes.contains(scope));
                fewer
            }
        };
        self.give(&mut inner, &grant, &next, &scopes, moment)
    }

    /// Issues the tokens of a grant.
    fn give(
        &self,
        inner: &mut Inner,
        id: &str,
        refresh: &str,
        scopes: &[String],
        moment: &Moment,
    ) -> Result<Reply, OauthRefusal> {
        let grant = inner.stored.grants.get_mut(id).ok_or(BAD_CODE)?;
        let (token_id, seconds) = (moment.draw(), self.settings.access_lifetime.as_secs());
        let now = moment.now / 1_000;
        let mut claims = json!({
            "iss": self.settings.issuer,
            "aud": self.settings.resource.as_str(),
            "sub": grant.user,
            "client_id": grant.client,
            "iat": now,
            "exp": now.saturating_add(seconds),
            "jti": token_id,
            "scope": scopes.join(" "),
        });
        if let Some(claims) = claims.as_object_mut().filter(|_| !grant.groups.is_empty()) {
            claims.insert("groups".to_owned(), json!(grant.groups));
        }
        grant.tokens.push((token_id, moment.after(seconds)));
        let event = AuthEvent { about: json!({"scope": scopes.join(" ")}), ..grant.event() };
        inner.unsaved = true;
        let tokens = json!({
            "access_token": self.signer().sign(&claims),
            "token_type": "Bearer",
            "expires_in": seconds,
            "refresh_token": refresh,
            "scope": scopes.join(" "),
        });
        Ok(Reply::json(200, &tokens).with_event(event))
    }

    /// Revokes a token (RFC 7009). Only the client that it was issued to may do that; an unknown token is no error.
    /// Revoking a refresh token ends the grant's access tokens too.
    pub fn revoke(&self, form: &str) -> Reply {
        let Some(parameters) = Parameters::read(form) else {
            return Reply::refusal(400, OauthRefusal::new("invalid_request", "the form cannot be read"));
        };
        let client = parameters.get("client_id");
        let reply = match self.end_token(&parameters) {
            Ok(event) => Reply::json(200, &json!({})).with_event(event),
            Err(refusal) => Reply::refusal(400, refusal),
        };
        reply.with_client(client)
    }

    fn end_token(&self, parameters: &Parameters) -> Result<AuthEvent, OauthRefusal> {
        let missing = |why| OauthRefusal::new("invalid_request", why);
        let token = parameters.get("token").ok_or(missing("token is missing"))?;
        let client = parameters.get("client_id").ok_or(missing("client_id is missing"))?;
        let check = |grant: &Grant| match grant.client == client {
            true => Ok(grant.event()),
            false => Err(OauthRefusal::new("invalid_grant", "the token was issued to another client")),
        };
        let mut inner = self.inner();
        if let Some(grant) = inner.stored.grant_of(token) {
            let event = check(grant)?;
            inner.stored.end(token.split_once('.').map(|(id, _)| id).unwrap_or_default());
            inner.unsaved = true;
            return Ok(event);
        }
        let unknown = || AuthEvent::refused("there is no such token");
        let Some(id) = self.signer().id_of(token) else { return Ok(unknown()) };
        let place = |grant: &Grant| grant.tokens.iter().position(|(known, _)| *known == id);
        let found = inner.stored.grants.values_mut().find_map(|grant| place(grant).map(|at| (grant, at)));
        let Some((grant, at)) = found else { return Ok(unknown()) };
        let event = check(grant)?;
        let token = grant.tokens.swap_remove(at);
        inner.stored.revoked.extend([token]);
        inner.unsaved = true;
        Ok(event)
    }
}
