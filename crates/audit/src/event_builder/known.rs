//! Cache of values that many records share: the description of a caller, and the risk of a tool.

use crate::event::{Object, RiskLevel};
use crate::risk;
use signalbox_engine::keys::TextMap;
use signalbox_engine::{Caller, Proof};
use signalbox_wire::json;
use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::sync::Arc;

/// Maximum number of cached callers, and of cached tools. A full cache is cleared.
pub const MAX_KNOWN: usize = 4_096;

/// Cached callers and risks.
#[derive(Default, Debug)]
pub struct RecordCache {
    /// By address, since each request of a connection creates a new `Caller`.
    callers: TextMap<Option<SocketAddr>, (Caller, Arc<str>)>,
    /// By the seeded hash of the definition, so that no backend can cause a collision.
    risks: TextMap<u64, RiskLevel>,
}

impl RecordCache {
    /// Returns the caller (G-25): a JSON object without its closing brace, so that the session can be appended.
    pub fn user(&mut self, caller: &Caller) -> Arc<str> {
        let address = caller.identity().address;
        if let Some((same, user)) = self.callers.get(&address)
            && same == caller
        {
            return Arc::clone(user);
        }
        let user: Arc<str> = user(caller).into();
        if self.callers.len() >= MAX_KNOWN {
            self.callers.clear();
        }
        self.callers.insert(address, (caller.clone(), Arc::clone(&user)));
        user
    }

    /// Returns the risk of a call before it is forwarded (G-26).
    pub fn risk(&mut self, definition: Option<&[u8]>, caller: &Caller) -> RiskLevel {
        let Some(definition) = definition else { return risk::of_call(risk::of_definition(None), caller) };
        let hash = self.risks.hasher().hash_one(definition);
        if self.risks.len() >= MAX_KNOWN {
            self.risks.clear();
        }
        let risk = self.risks.entry(hash).or_insert_with(|| risk::of_definition(Some(definition)));
        risk::of_call(*risk, caller)
    }
}

fn user(caller: &Caller) -> String {
    let identity = caller.identity();
    let mut text = String::with_capacity(256);
    let mut context = Object::new(&mut text);
    context.text("principal", identity.principal.as_str());
    context.text("trust_level", identity.trust().word());
    let roles = identity.standing.iter().flat_map(|standing| &standing.roles);
    context.array("roles", roles.map(|role| move |out: &mut String| json::push_quoted(out, role)));
    context.text("proof", identity.proof.word());
    // The principal of a certificate is a hash or the name of a rule.
    let subject = identity.claims.iter().find(|(name, _)| identity.proof == Proof::Certificate && &**name == "subject");
    context.maybe("subject", subject.map(|(_, subject)| &**subject));
    // Fully validated requests state a purpose and permissions.
    for name in ["purpose", "permissions"] {
        let stated = identity.claims.iter().find(|(claim, _)| identity.proof == Proof::Signature && &**claim == name);
        context.maybe(name, stated.map(|(_, value)| &**value));
    }
    context.maybe("address", identity.address.map(|address| address.to_string()).as_deref());
    context.text("transport", identity.transport);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::{Identity, Principal};

    fn caller(name: &str, port: u16) -> Caller {
        let of = Caller::of(Principal::named(name), Proof::ApiKey, "http");
        Caller::new(Identity { address: Some(([127, 0, 0, 1], port).into()), ..of.identity().clone() })
    }

    /// Whoever calls from an address that another used before is not taken for it.
    /// Proves G-25.
    #[test]
    fn another_caller_at_the_same_address_is_another_one() {
        let mut known = RecordCache::default();
        let ada = known.user(&caller("ada", 1));
        assert!(ada.contains("\"principal\":\"ada\"") && ada.contains("127.0.0.1:1"), "{ada}");
        assert!(Arc::ptr_eq(&ada, &known.user(&caller("ada", 1))), "it is written once");
        assert!(known.user(&caller("eve", 1)).contains("\"principal\":\"eve\""));
        for port in 0..=u16::MAX {
            known.user(&caller("ada", port));
        }
        assert!(known.callers.len() <= MAX_KNOWN);
    }

    /// What a signed request states of its purpose stands in its records, and claims of other requests do not.
    /// Proves PO-16.
    #[test]
    fn purpose_and_permissions_of_signed_requests_are_recorded() {
        let mut known = RecordCache::default();
        let claims = vec![("purpose".into(), "analytics: p".into()), ("permissions".into(), "read:mail 5/h".into())];
        let with =
            |proof| Caller::new(Identity { claims: claims.clone(), proof, ..caller("ada", 1).identity().clone() });
        let signed = known.user(&with(Proof::Signature));
        assert!(signed.contains(r#""purpose":"analytics: p","permissions":"read:mail 5/h""#), "{signed}");
        assert!(!known.user(&with(Proof::Token)).contains("purpose"));
    }

    /// A definition that changes has another risk.
    /// Proves G-26.
    #[test]
    fn the_risk_is_that_of_the_definition_as_it_is() {
        let (mut known, ada) = (RecordCache::default(), caller("ada", 1));
        for round in 0..MAX_KNOWN + 10 {
            let destroys = round % 2 == 0;
            let definition = format!(r#"{{"title":"{round}","annotations":{{"destructiveHint":{destroys}}}}}"#);
            let expected = if destroys { RiskLevel::High } else { RiskLevel::Medium };
            assert_eq!(known.risk(Some(definition.as_bytes()), &ada), expected);
            assert_eq!(known.risk(Some(definition.as_bytes()), &ada), expected);
        }
        assert!(known.risks.len() <= MAX_KNOWN);
        assert_eq!(known.risk(None, &ada), RiskLevel::Medium);
    }
}
