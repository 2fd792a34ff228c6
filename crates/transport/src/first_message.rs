//! Authentication in the first message of a connection, for clients that cannot send headers.
//!
//! ```text
//! → {"jsonrpc":"2.0","id":1,"method":"signalbox/authenticate","params":{"scheme":"bearer","credential":"…"}}
//! ← {"jsonrpc":"2.0","id":1,"result":{"subject":"corp:ada","expiresAt":"2026-11-17T10:00:00.000Z"}}
//! ```
//! Any other first message is answered as unauthenticated, and the connection is closed.

use bytes::Bytes;
use signalbox_engine::authenticator::{Arrival, Authenticators, ConnectionProof};
use signalbox_engine::{Caller, Fault, FaultKind, Identity, Principal, Proof};
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::{Envelope, Era, Kind, RawId, builder, json, timestamp};
use std::net::SocketAddr;

/// Name of the authentication method.
pub const METHOD: &str = "signalbox/authenticate";
/// Maximum size of the first message of an unauthenticated client.
pub const MAX_FIRST_MESSAGE: usize = 64 * 1024;

/// A connection before its first message, with all that identifies its client so far.
pub(crate) struct PendingConnection<'a> {
    pub authenticators: &'a Authenticators,
    pub transport: &'static str,
    pub address: Option<SocketAddr>,
    pub shown: Option<&'a ConnectionProof>,
}

/// A refused first message.
pub(crate) struct FirstMessageRefusal {
    id: Option<RawId>,
    /// Reason for the refusal.
    pub fault: Fault,
}

impl FirstMessageRefusal {
    /// Builds the error response.
    pub fn reply(&self) -> Bytes {
        self.fault.reply(self.id.as_ref(), Era::Legacy)
    }
}

impl PendingConnection<'_> {
    /// Authenticates the caller by the credential in the first message. Returns the caller and the response.
    ///
    /// # Errors
    /// Returns a refusal if this is another message or the credential is invalid.
    pub fn prove(&self, gateway: &Gateway, message: Bytes) -> Result<(Caller, Bytes), FirstMessageRefusal> {
        let without_id = |fault| FirstMessageRefusal { id: None, fault };
        if message.len() > MAX_FIRST_MESSAGE {
            return Err(without_id(unauthenticated("the first message is too large")));
        }
        let message = Envelope::read(message, &gateway.settings().limits)
            .map_err(|_| without_id(unauthenticated("the first message must be `signalbox/authenticate`")))?;
        let proved = credential(&message).and_then(|(id, credential)| Ok((id, self.identify(&credential)?)));
        match proved {
            Ok((id, caller)) => {
                gateway.identified(&caller);
                let answer = answer(&id, &caller);
                Ok((caller, answer))
            }
            Err(fault) => Err(FirstMessageRefusal { id: message.id(), fault }),
        }
    }

    /// Returns an unknown caller at the connection's address, for the record of a refusal.
    pub fn unknown_caller(&self) -> Caller {
        let (principal, proof) = (Principal::named("unknown"), Proof::Unproved);
        let (address, transport) = (self.address, self.transport);
        Caller::new(Identity { principal, proof, claims: Vec::new(), address, transport, standing: None })
    }

    fn identify(&self, credential: &str) -> Result<Caller, Fault> {
        let authorization = format!("Bearer {credential}");
        let header = |name: &str| (name == "authorization").then_some(authorization.as_bytes());
        let caller = self.authenticators.identify(&Arrival {
            transport: self.transport,
            address: self.address,
            shown: self.shown,
            header: &header,
            now: unix_millis(),
        })?;
        // A credential that no authenticator checked has proved nothing.
        match caller.identity().proof {
            Proof::Unproved => Err(unauthenticated("no such credential is accepted here")),
            _ => Ok(caller),
        }
    }
}

fn unauthenticated(text: &str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, text)
}

/// Extracts the request's id and its credential.
fn credential(message: &Envelope) -> Result<(RawId, String), Fault> {
    let Some(id) = message.id().filter(|_| message.kind() == Kind::Request && message.method() == Some(METHOD)) else {
        let text = "the caller did not prove who it is; the first message must be `signalbox/authenticate`";
        return Err(unauthenticated(text));
    };
    let text =
        |name: &str| message.param(name).and_then(|span| Some(json::string(span.of(message.bytes()))?.into_owned()));
    let scheme = text("scheme").ok_or_else(|| unauthenticated("`signalbox/authenticate` needs a `scheme`"))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unauthenticated("the only scheme of `signalbox/authenticate` is `bearer`"));
    }
    let credential = text("credential");
    let credential = credential.ok_or_else(|| unauthenticated("`signalbox/authenticate` needs a `credential`"))?;
    Ok((id, credential))
}

/// Builds the response to an authenticated caller: its principal and the expiry of its credential.
fn answer(id: &RawId, caller: &Caller) -> Bytes {
    let mut result = br#"{"subject":"#.to_vec();
    json::write_quoted(&mut result, caller.principal().as_str());
    let standing = caller.identity().standing.as_ref();
    if let Some(expires) = standing.and_then(|standing| standing.credential.as_ref()?.expires) {
        result.extend_from_slice(br#","expiresAt":"#);
        json::write_quoted(&mut result, &timestamp::rfc3339_millis(expires));
    }
    result.push(b'}');
    builder::response(id, &result)
}
