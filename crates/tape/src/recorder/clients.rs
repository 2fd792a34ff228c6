//! Callers without a session, each described once on the tape.

use super::sessions;
use bytes::Bytes;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::ClientEntry;
use signalbox_engine::{Caller, ClientProfile};
use signalbox_wire::Revision;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

/// Maximum number of known callers. Beyond it all are forgotten, and described again under new numbers.
const MAX_CLIENTS: usize = 10_000;
/// Interval, in nanoseconds, after which all callers are described again, since the beginning of a tape may have been
/// pruned.
const AGAIN_AFTER: u64 = 3_600 * 1_000_000_000;

/// Callers that the tape describes. Recognizing a caller, which happens for every request, does not allocate.
#[derive(Default, Debug)]
pub(crate) struct Clients {
    known: KeyMap<u64, KnownClient>,
    hasher: foldhash::fast::RandomState,
    counted: u64,
    since: u64,
}

#[derive(Debug)]
struct KnownClient {
    caller: Caller,
    said: Option<(Revision, Option<Bytes>)>,
    number: u64,
}

impl Clients {
    /// Returns the number of a caller, and its description if it is new.
    pub(crate) fn number(
        &mut self,
        caller: &Caller,
        client: Option<&ClientProfile>,
        now: u64,
    ) -> (u64, Option<ClientEntry>) {
        if now.saturating_sub(self.since) >= AGAIN_AFTER {
            self.known.clear();
            self.since = now;
        }
        let place = self.place(caller, client);
        if let Some(known) = self.known.get(&place).filter(|known| known.is(caller, client)) {
            return (known.number, None);
        }
        if self.known.len() >= MAX_CLIENTS {
            self.known.clear();
        }
        self.counted += 1;
        let number = self.counted;
        // A slice would keep the whole message in memory, so the bytes are copied.
        let said = client.map(|client| (client.revision, client.info.as_deref().map(Bytes::copy_from_slice)));
        self.known.insert(place, KnownClient { caller: caller.clone(), said, number });
        let info = sessions::info(caller, client, None, caller.identity().transport);
        (number, Some(ClientEntry { number, info }))
    }

    fn place(&self, caller: &Caller, client: Option<&ClientProfile>) -> u64 {
        let identity = caller.identity();
        let mut hasher = self.hasher.build_hasher();
        identity.principal.as_str().hash(&mut hasher);
        identity.proof.hash(&mut hasher);
        identity.claims.hash(&mut hasher);
        address(caller).hash(&mut hasher);
        identity.transport.hash(&mut hasher);
        client.map(|client| (client.revision.as_str(), client.info.as_deref())).hash(&mut hasher);
        hasher.finish()
    }
}

impl KnownClient {
    fn is(&self, caller: &Caller, client: Option<&ClientProfile>) -> bool {
        let said = match (&self.said, client) {
            (None, None) => true,
            (Some((revision, info)), Some(client)) => {
                *revision == client.revision && info.as_deref() == client.info.as_deref()
            }
            _ => false,
        };
        said && (self.caller.is_same(caller) || is_alike(&self.caller, caller))
    }
}

/// Compares callers without the port, which distinguishes connections and not callers.
fn is_alike(one: &Caller, other: &Caller) -> bool {
    let (a, b) = (one.identity(), other.identity());
    address(one) == address(other)
        && (&a.principal, a.proof, &a.claims, a.transport) == (&b.principal, b.proof, &b.claims, b.transport)
}

/// Returns the address of a caller, without the port.
pub(crate) fn address(caller: &Caller) -> Option<IpAddr> {
    caller.identity().address.map(|address| address.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::caller::Identity;
    use signalbox_engine::{Principal, Proof};

    fn caller(user: &str, address: &str) -> Caller {
        Caller::new(Identity {
            principal: Principal::local(user),
            proof: Proof::Certificate,
            claims: vec![("subject".into(), "CN=ann".into())],
            address: address.parse().ok(),
            transport: "http",
            standing: None,
        })
    }

    fn client(version: &str) -> ClientProfile {
        let info = Bytes::from(format!(r#"{{"name":"agent","version":"{version}"}}"#));
        ClientProfile::new(Revision::LATEST, Bytes::from_static(b"{}"), Some(info))
    }

    /// Proves S-28.
    #[test]
    fn a_caller_without_a_session_is_told_of_once() {
        let mut clients = Clients::default();
        let (number, told) = clients.number(&caller("ann", "10.0.0.7:50001"), Some(&client("1")), 5);
        let info = told.unwrap().info;
        assert_eq!(
            (info.client.as_deref(), info.client_version.as_deref(), info.proof.as_deref(), info.address.as_deref()),
            (Some("agent"), Some("1"), Some("certificate"), Some("10.0.0.7"))
        );
        assert_eq!((info.revision.as_deref(), &*info.transport), (Some(Revision::LATEST.as_str()), "http"));
        assert_eq!(info.claims, [("subject".to_owned(), "CN=ann".to_owned())]);
        let mut again = |now| clients.number(&caller("ann", "10.0.0.7:50002"), Some(&client("1")), now);
        assert_eq!(again(6), (number, None), "another port is no other caller");
        assert!(again(AGAIN_AFTER).1.is_some(), "the beginning of the tape may be gone");
        assert_eq!(again(AGAIN_AFTER + 1), (number + 1, None));
    }

    /// Proves S-71.
    #[test]
    fn whoever_differs_in_anything_is_another_caller() {
        let mut clients = Clients::default();
        let mut new = |caller: &Caller, client: Option<&ClientProfile>| clients.number(caller, client, 1).1.is_some();
        let (ann, one) = (caller("ann", "10.0.0.7:1"), client("1"));
        assert!(new(&ann, Some(&one)));
        assert!(new(&ann, Some(&client("2"))) && new(&ann, None));
        assert!(new(&caller("bob", "10.0.0.7:1"), Some(&one)) && new(&caller("ann", "10.0.0.8:1"), Some(&one)));
        assert!(new(&Caller::local("ann", "stdio"), Some(&one)));
        assert!(!new(&ann, Some(&one)) && !new(&caller("bob", "10.0.0.7:9"), Some(&one)));
    }

    /// Proves S-70.
    #[test]
    fn no_more_callers_are_known_than_the_bound() {
        let mut clients = Clients::default();
        for number in 0..=MAX_CLIENTS {
            clients.number(&caller(&number.to_string(), "10.0.0.7:1"), None, 1);
            assert!(clients.known.len() <= MAX_CLIENTS);
        }
        assert_eq!(clients.number(&caller("0", "10.0.0.7:1"), None, 1).0, MAX_CLIENTS as u64 + 2);
    }
}
