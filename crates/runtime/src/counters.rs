//! The gateway's counters: what was dropped or refused, and what is open now.

use signalbox_engine::Limit;
use signalbox_engine::keys::TextMap;
use signalbox_engine::labelled_durations::LabelledDurations;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::operation_metrics::OperationMetrics;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Most counter names that rules may use.
pub const MAX_NAMED: usize = 256;

/// Most addresses whose refusals are counted apart.
pub const MAX_ADDRESSES: usize = 256;

/// The counters of one gateway. Reasons come from this program, never from a client.
#[derive(Debug, Default)]
pub struct Counters {
    dropped: Mutex<BTreeMap<&'static str, u64>>,
    refused: [AtomicU64; Limit::ALL.len()],
    /// Requests in flight.
    pub in_flight: AtomicI64,
    /// Sessions ever opened.
    pub sessions_opened: AtomicU64,
    /// Sessions refused because there were too many.
    pub sessions_refused: AtomicU64,
    /// Front connections open now.
    pub connections: AtomicI64,
    /// Front connections refused because there were too many.
    pub connections_refused: AtomicU64,
    /// Event streams open now.
    pub event_streams: Arc<AtomicUsize>,
    /// Messages refused by the strict scan or the envelope.
    pub malformed: AtomicU64,
    /// The number of the configuration in force.
    pub config_generation: AtomicU64,
    /// Reloads of the configuration that were carried out.
    pub reloads: AtomicU64,
    /// Reloads that were refused.
    pub reloads_refused: AtomicU64,
    /// True while the file says something that was refused.
    pub config_outdated: AtomicBool,
    /// TLS handshakes under way.
    pub handshakes: AtomicI64,
    /// TLS handshakes that succeeded.
    pub handshakes_done: AtomicU64,
    /// Signatures of messages that were verified.
    pub signatures_verified: AtomicU64,
    /// How long backends take for requests.
    pub client_operations: Arc<OperationMetrics>,
    /// How long connections to backends last, by what carries them.
    pub client_sessions: LabelledDurations,
    /// How long sessions of clients last, by what carries them.
    pub server_sessions: LabelledDurations,
    refused_signatures: Mutex<BTreeMap<&'static str, u64>>,
    failed_handshakes: Mutex<BTreeMap<&'static str, u64>>,
    unknown_callers: Mutex<BTreeMap<Option<IpAddr>, u64>>,
    named: Mutex<TextMap<Arc<str>, u64>>,
}

impl Counters {
    /// Counts a dropped message.
    pub fn dropped(&self, reason: &'static str) {
        *self.dropped.lock().unpoisoned().entry(reason).or_default() += 1;
    }

    /// Counts under each of these names, which rules chose. Beyond [`MAX_NAMED`] names, new ones are counted as `other`.
    pub fn counted(&self, names: &[Arc<str>]) {
        let mut named = self.named.lock().unpoisoned();
        for name in names {
            if let Some(count) = named.get_mut(name) {
                *count += 1;
                continue;
            }
            let known = named.len() < MAX_NAMED;
            *named.entry(if known { Arc::clone(name) } else { Arc::from("other") }).or_default() += 1;
        }
    }

    /// What rules counted, by name.
    #[must_use]
    pub fn all_counted(&self) -> BTreeMap<Arc<str>, u64> {
        let named = self.named.lock().unpoisoned();
        named.iter().map(|(name, count)| (Arc::clone(name), *count)).collect()
    }

    /// Counts a refusal at a limit.
    pub fn refused(&self, limit: Limit) {
        Self::add(&self.refused[limit.number()]);
    }

    /// What was refused, by limit.
    #[must_use]
    pub fn all_refused(&self) -> BTreeMap<&'static str, u64> {
        let read = |limit: Limit| (limit.word(), self.refused[limit.number()].load(Ordering::Relaxed));
        Limit::ALL.into_iter().map(read).collect()
    }

    /// What was dropped, by reason.
    #[must_use]
    pub fn all_dropped(&self) -> BTreeMap<&'static str, u64> {
        self.dropped.lock().unpoisoned().clone()
    }

    /// Counts a message whose signature was refused.
    pub fn signature_refused(&self, reason: &'static str) {
        *self.refused_signatures.lock().unpoisoned().entry(reason).or_default() += 1;
    }

    /// Messages whose signatures were refused, by reason.
    #[must_use]
    pub fn refused_signatures(&self) -> BTreeMap<&'static str, u64> {
        self.refused_signatures.lock().unpoisoned().clone()
    }

    /// Counts a message that was too large for a caller whom only its signature could prove, at that limit and for its address.
    /// Beyond [`MAX_ADDRESSES`], new addresses are counted together.
    pub fn unknown_caller(&self, address: Option<IpAddr>) {
        self.refused(Limit::UnknownCaller);
        let mut addresses = self.unknown_callers.lock().unpoisoned();
        let known = addresses.len() < MAX_ADDRESSES || addresses.contains_key(&address);
        *addresses.entry(address.filter(|_| known)).or_default() += 1;
    }

    /// Those messages by address; `other` are those without one, or beyond the addresses that are counted apart.
    #[must_use]
    pub fn unknown_callers(&self) -> BTreeMap<String, u64> {
        let addresses = self.unknown_callers.lock().unpoisoned();
        let name = |address: &Option<IpAddr>| address.map_or_else(|| "other".to_owned(), |address| address.to_string());
        addresses.iter().map(|(address, count)| (name(address), *count)).collect()
    }

    /// Counts a TLS handshake that failed.
    pub fn handshake_failed(&self, reason: &'static str) {
        *self.failed_handshakes.lock().unpoisoned().entry(reason).or_default() += 1;
    }

    /// TLS handshakes that failed, by reason.
    #[must_use]
    pub fn failed_handshakes(&self) -> BTreeMap<&'static str, u64> {
        self.failed_handshakes.lock().unpoisoned().clone()
    }

    /// Adds one to a counter.
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What carries a transport of ours, in the words of OpenTelemetry.
#[must_use]
pub fn network_transport(via: &str) -> &'static str {
    match via {
        "stdio" | "built-in" | "tape" => "pipe",
        _ => "tcp",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn many_addresses_are_counted_together() {
        let counters = Counters::default();
        let address = |number: u32| Some(IpAddr::V4(Ipv4Addr::from_bits(number)));
        for number in 0..1_000 {
            counters.unknown_caller(address(number));
        }
        counters.unknown_caller(address(5));
        let counted = counters.unknown_callers();
        assert_eq!((counted.len(), counted["0.0.0.5"]), (MAX_ADDRESSES + 1, 2));
        assert_eq!(counted.values().sum::<u64>(), 1_001);
        assert_eq!(counters.all_refused()["unknown_caller"], 1_001);
    }
}
