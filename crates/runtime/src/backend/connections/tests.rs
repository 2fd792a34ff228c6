//! What holds of a backend's connections, whatever happens to them.

use super::*;
use crate::backend::Backend;
use crate::gateway::{Gateway, GatewayParts};
use crate::link::nowhere::backend;
use crate::settings::Settings;
use signalbox_engine::Caller;
use signalbox_engine::Principal;
use signalbox_engine::front::Mode;
use std::time::Duration;

/// A gateway with one backend, and connections to it that are never opened.
struct Setup {
    gateway: Arc<Gateway>,
    backend: Arc<Backend>,
}

impl Setup {
    fn new() -> Self {
        let backend = backend("a");
        let gateway =
            Gateway::new(GatewayParts::unguarded(Settings::default(), vec![Arc::clone(&backend)]).unwrap()).unwrap();
        Self { gateway, backend }
    }

    fn session(&self, external: &str) -> Arc<Session> {
        let caller = Caller::gateway(Principal::anonymous());
        self.gateway.open_session(caller, Mode::Session, external, "http").unwrap()
    }

    fn home(&self) -> Arc<Peer> {
        Peer::home(&self.backend, Principal::anonymous().into(), Wish::Auto, self.backend.offer())
    }

    fn shared(&self, user: &BackendUser, wish: Wish) -> Arc<Peer> {
        Peer::shared(&self.backend, user.clone(), wish, self.backend.offer())
    }

    fn owned(&self, session: &Arc<Session>) -> Arc<Peer> {
        Peer::owned(&self.backend, session, session.user(), Wish::Legacy, self.backend.offer())
    }

    fn pooled(&self, key: &PoolKey) -> Arc<Peer> {
        Peer::pooled(&self.backend, key.clone(), self.backend.offer())
    }
}

fn pool_key(user: &BackendUser) -> PoolKey {
    PoolKey { user: user.clone(), caps: CapSet::bare(), info: None }
}

fn ids(peers: impl IntoIterator<Item = Arc<Peer>>) -> Vec<u64> {
    peers.into_iter().map(|peer| peer.id.0).collect()
}

#[test]
fn each_connection_is_found_under_its_role_and_nowhere_after_its_removal() {
    let (setup, mut connections, principal) =
        (Setup::new(), Connections::default(), BackendUser::from(Principal::anonymous()));
    let (session, key) = (setup.session("s"), pool_key(&principal));
    let peers = [
        setup.shared(&principal, Wish::Legacy),
        setup.shared(&principal, Wish::Modern),
        setup.owned(&session),
        setup.pooled(&key),
        setup.pooled(&key),
    ];
    for peer in &peers {
        connections.insert(Arc::clone(peer));
    }
    assert_eq!(connections.shared(&principal, Era::Legacy).map(|peer| peer.id), Some(peers[0].id));
    assert_eq!(connections.shared(&principal, Era::Modern).map(|peer| peer.id), Some(peers[1].id));
    assert_eq!(connections.owned(session.key, &principal).map(|peer| peer.id), Some(peers[2].id));
    assert_eq!(ids(connections.pool(&key).to_vec()), ids(peers[3..].to_vec()));
    assert_eq!(connections.pooled_count(), 2);
    assert_eq!(ids(connections.all()), ids(peers.clone()));
    assert_eq!(connections.serving(&session, &principal).len(), peers.len());
    for peer in &peers {
        connections.remove(peer);
        assert!(!connections.all().iter().any(|one| one.id == peer.id));
    }
    assert!(connections.shared.is_empty() && connections.owned.is_empty() && connections.pooled.is_empty());
}

#[test]
fn the_removal_of_a_connection_spares_the_one_that_took_its_place() {
    let (setup, mut connections, principal) =
        (Setup::new(), Connections::default(), BackendUser::from(Principal::anonymous()));
    let session = setup.session("s");
    for (old, new) in [
        (setup.shared(&principal, Wish::Legacy), setup.shared(&principal, Wish::Legacy)),
        (setup.owned(&session), setup.owned(&session)),
    ] {
        connections.insert(Arc::clone(&old));
        connections.insert(Arc::clone(&new));
        connections.remove(&old);
        assert!(connections.all().iter().any(|one| one.id == new.id));
    }
}

#[test]
fn the_home_connection_is_shared_once_it_is_ready_and_counts_once() {
    let (setup, mut connections, principal) =
        (Setup::new(), Connections::default(), BackendUser::from(Principal::anonymous()));
    let (home, before) = (setup.home(), setup.shared(&principal, Wish::Legacy));
    connections.insert(Arc::clone(&home));
    connections.insert(Arc::clone(&before));
    assert!(connections.is_home(&home) && !connections.is_home(&before));
    assert_eq!(connections.share_home(Era::Legacy).map(|peer| peer.id), Some(before.id));
    assert!(connections.share_home(Era::Legacy).is_none(), "it does not replace itself");
    assert_eq!(ids(connections.all()), ids([Arc::clone(&home)]));
    connections.remove(&home);
    assert!(connections.shared(&principal, Era::Legacy).is_none());
    assert!(connections.is_home(&home), "it is known as home until there is another");
    connections.drop_home();
    assert!(connections.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_session_that_was_away_longest_gives_way_first_and_then_a_pooled_connection() {
    let (setup, mut connections, principal) =
        (Setup::new(), Connections::default(), BackendUser::from(Principal::anonymous()));
    let earlier = setup.session("earlier");
    tokio::time::advance(Duration::from_secs(1)).await;
    let later = setup.session("later");
    let peers = [setup.pooled(&pool_key(&principal)), setup.owned(&later), setup.owned(&earlier), setup.home()];
    for peer in &peers {
        connections.insert(Arc::clone(peer));
    }
    let mut give_way = || connections.give_way(Candidates::OwnedThenPooled, |_| false).map(|peer| peer.id);
    assert_eq!(give_way(), Some(peers[2].id));
    assert_eq!(give_way(), Some(peers[1].id));
    assert_eq!(give_way(), Some(peers[0].id));
    assert_eq!(give_way(), None, "the home connection stays");
    assert!(peers[..3].iter().all(|peer| peer.has_given_way()));
}

#[test]
fn nothing_gives_way_that_is_needed_in_use_or_of_another_principal() {
    let (setup, mut connections, principal) =
        (Setup::new(), Connections::default(), BackendUser::from(Principal::anonymous()));
    let (owned, pooled) = (setup.owned(&setup.session("s")), setup.pooled(&pool_key(&principal)));
    connections.insert(Arc::clone(&owned));
    connections.insert(Arc::clone(&pooled));
    assert!(connections.give_way(Candidates::OwnedThenPooled, |_| true).is_none());
    let other = BackendUser::from(Principal::local("else"));
    assert!(connections.give_way(Candidates::PooledOf(&other), |_| false).is_none());
    let in_use = pooled.exclusive_use();
    assert!(in_use.is_some() && connections.give_way(Candidates::Pooled, |_| false).is_none());
    drop(in_use);
    assert_eq!(connections.give_way(Candidates::Pooled, |_| false).map(|peer| peer.id), Some(pooled.id));
    assert!(connections.pooled.is_empty() && connections.owns(owned.owner().unwrap().key));
}
