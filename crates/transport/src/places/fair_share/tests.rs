use super::*;
use signalbox_engine::Identity;

fn proved(name: &str) -> ConnectionHolder {
    ConnectionHolder::Proved(Principal::named(name))
}

fn at(last: u8) -> ConnectionHolder {
    ConnectionHolder::Unproved(Some(IpAddr::from([192, 0, 2, last])))
}

/// Connections in use, numbered in this order.
fn holdings(most: usize, holders: &[(ConnectionHolder, usize)]) -> Holdings<(ConnectionHolder, u64)> {
    let each = holders.iter().flat_map(|(holder, count)| std::iter::repeat_n(holder, *count));
    let candidate = |(number, holder): (u64, &ConnectionHolder)| EvictionCandidate {
        connection: (holder.clone(), number),
        holder: holder.clone(),
        is_in_use: true,
        number,
    };
    Holdings::new(most, (0..).zip(each).map(candidate).collect())
}

/// The holders whose connections end while this newcomer comes again and again, as numbers of connections.
fn ended(
    holdings: &mut Holdings<(ConnectionHolder, u64)>,
    claimant: &ConnectionHolder,
) -> Vec<(ConnectionHolder, u64)> {
    std::iter::from_fn(|| holdings.displace(claimant)).map(|displaced| displaced.connection).collect()
}

#[test]
fn the_newest_streams_of_a_caller_above_its_share_end_and_no_more() {
    let mut all = holdings(50, &[(proved("ada"), 48), (proved("bob"), 2)]);
    let first = all.displace(&proved("vic")).unwrap();
    assert_eq!((first.connection, first.held, first.share), ((proved("ada"), 47), 48, 16));
    let ended = ended(&mut all, &proved("vic"));
    assert_eq!(ended.first(), Some(&(proved("ada"), 46)));
    assert_eq!(ended.last(), Some(&(proved("ada"), 16)));
    assert!(ended.iter().all(|(holder, _)| *holder == proved("ada")), "{ended:?}");
}

#[test]
fn a_caller_with_its_share_displaces_none() {
    let mut all = holdings(50, &[(proved("ada"), 30), (proved("vic"), 20)]);
    assert_eq!(all.displace(&proved("ada")), None);
    // One more than its share is taken from it, once.
    assert_eq!(ended(&mut all, &proved("vic")).len(), 5);
}

#[test]
fn unproved_connections_end_before_those_of_proved_callers() {
    let mut all = holdings(50, &[(at(1), 25), (proved("ada"), 25)]);
    let ended = ended(&mut all, &proved("vic"));
    let strangers = ended.iter().take_while(|(holder, _)| *holder == at(1)).count();
    assert_eq!((strangers, ended.len()), (9, 18), "both go down to a third, strangers first");
}

#[test]
fn many_addresses_have_one_share_together_toward_proved_callers() {
    let strangers: Vec<_> = (0..48).map(|last| (at(last), 1)).collect();
    let mut all = holdings(50, &[&strangers[..], &[(proved("ada"), 2)]].concat());
    assert_eq!(ended(&mut all, &at(100)), [], "none of them has more than its share, nor has Ada");
    assert_eq!(ended(&mut all, &proved("vic")).len(), 48 - 50 / 3);
}

#[test]
fn a_stranger_gets_its_part_from_a_machine_or_caller_with_more() {
    let mut flood = holdings(50, &[(at(1), 50)]);
    assert_eq!(flood.displace(&at(1)), None, "it has its share already");
    assert_eq!(flood.displace(&at(2)).unwrap().connection, (at(1), 49));
    let mut calls = holdings(50, &[(proved("ada"), 50)]);
    assert_eq!(ended(&mut calls, &at(1)).len(), 25);
    let mut both = holdings(50, &[(proved("ada"), 25), (at(1), 25)]);
    assert_eq!(both.displace(&at(1)), None);
}

#[test]
fn the_only_place_is_not_taken_from_its_holder() {
    let mut all = holdings(1, &[(proved("ada"), 1)]);
    assert_eq!((all.displace(&proved("vic")), all.displace(&at(1))), (None, None));
}

#[test]
fn connections_whose_request_has_not_come_are_the_last_to_end() {
    let candidate =
        |number, is_in_use| EvictionCandidate { connection: number, holder: proved("ada"), is_in_use, number };
    let mut all =
        Holdings::new(6, vec![candidate(1, true), candidate(2, true), candidate(3, false), candidate(4, false)]);
    let taken: Vec<u64> = std::iter::from_fn(|| all.displace(&proved("vic"))).map(|taken| taken.connection).collect();
    assert_eq!(taken, [2], "three are its share");
}

#[test]
fn addresses_of_one_ipv6_network_are_one_holder() {
    let of = |text: &str| ConnectionHolder::of(None, Some(SocketAddr::new(text.parse().unwrap(), 1)));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.7"), at(7));
    assert_ne!(of("192.0.2.7"), of("192.0.2.8"));
    let caller = |proof| {
        let (principal, address) = (Principal::named("ada"), None);
        Caller::new(Identity { principal, proof, claims: Vec::new(), address, transport: "http", standing: None })
    };
    assert_eq!(ConnectionHolder::of(Some(&caller(Proof::ApiKey)), None), proved("ada"));
    assert_eq!(ConnectionHolder::of(Some(&caller(Proof::Unproved)), None), ConnectionHolder::Unproved(None));
}
