//! Counters of the gateway: drops and refusals, and what is open now.

use signalbox_engine::Limit;
use signalbox_engine::keys::TextMap;
use signalbox_engine::labelled_durations::LabelledDurations;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::operation_metrics::OperationMetrics;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of counter names that rules may use.
pub const MAX_NAMED: usize = 256;

/// Maximum number of addresses that are counted separately.
pub const MAX_ADDRESSES: usize = 256;

/// Counters of one gateway. Reasons come from this program, never from a client.
#[derive(Debug, Default)]
pub struct Counters {
    dropped: Mutex<BTreeMap<&'static str, u64>>,
    refused: [AtomicU64; Limit::ALL.len()],
    pub in_flight: AtomicI64,
    /// Sessions opened since the start.
    pub sessions_opened: AtomicU64,
    /// Sessions refused because of the limit.
    pub sessions_refused: AtomicU64,
    /// Client connections that are open now.
    pub connections: AtomicI64,
    /// Client connections refused because of the limit.
    pub connections_refused: AtomicU64,
    /// Event streams that are open now.
    pub event_streams: Arc<AtomicUsize>,
    /// Messages refused by the strict scan or the envelope parser.
    pub malformed: AtomicU64,
    /// Number of the configuration in force.
    pub config_generation: AtomicU64,
    /// Completed reloads of the configuration.
    pub reloads: AtomicU64,
    /// Refused reloads of the configuration.
    pub reloads_refused: AtomicU64,
    /// True while the configuration file has content that was refused.
    pub config_outdated: AtomicBool,
    /// TLS handshakes in progress.
    pub handshakes: AtomicI64,
    pub handshakes_done: AtomicU64,
    /// Verified signatures of messages.
    pub signatures_verified: AtomicU64,
    /// Durations of requests at backends.
    pub client_operations: Arc<OperationMetrics>,
    /// Lifetimes of connections to backends, by network transport.
    pub client_sessions: LabelledDurations,
    /// Lifetimes of client sessions, by network transport.
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

    /// Counts under each of these names, which rules chose. Beyond [`MAX_NAMED`] names, new ones are counted as
    /// `other`.
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

    /// Returns the counters of rules by name.
    #[must_use]
    pub fn all_counted(&self) -> BTreeMap<Arc<str>, u64> {
        let named = self.named.lock().unpoisoned();
        named.iter().map(|(name, count)| (Arc::clone(name), *count)).collect()
    }

    /// Counts a refusal at a limit.
    pub fn refused(&self, limit: Limit) {
        Self::add(&self.refused[limit.number()]);
    }

    /// Returns the number of refusals by limit.
    #[must_use]
    pub fn all_refused(&self) -> BTreeMap<&'static str, u64> {
        let read = |limit: Limit| (limit.word(), self.refused[limit.number()].load(Ordering::Relaxed));
        Limit::ALL.into_iter().map(read).collect()
    }

    /// Returns the number of dropped messages by reason.
    #[must_use]
    pub fn all_dropped(&self) -> BTreeMap<&'static str, u64> {
        self.dropped.lock().unpoisoned().clone()
    }

    /// Counts a message whose signature was refused.
    pub fn signature_refused(&self, reason: &'static str) {
        *self.refused_signatures.lock().unpoisoned().entry(reason).or_default() += 1;
    }

    /// Returns the number of messages whose signatures were refused, by reason.
    #[must_use]
    pub fn refused_signatures(&self) -> BTreeMap<&'static str, u64> {
        self.refused_signatures.lock().unpoisoned().clone()
    }

    /// Counts a message, by address, that was too large to check the signature on which its caller's identity depends.
    /// Beyond [`MAX_ADDRESSES`], new addresses are counted together.
    pub fn unknown_caller(&self, address: Option<IpAddr>) {
        self.refused(Limit::UnknownCaller);
        let mut addresses = self.unknown_callers.lock().unpoisoned();
        let known = addresses.len() < MAX_ADDRESSES || addresses.contains_key(&address);
        *addresses.entry(address.filter(|_| known)).or_default() += 1;
    }

    /// Returns the counts of [`Self::unknown_caller`] by address. `other` covers messages without an address or beyond
    /// the limit.
    #[must_use]
    pub fn unknown_callers(&self) -> BTreeMap<String, u64> {
        let addresses = self.unknown_callers.lock().unpoisoned();
        let name = |address: &Option<IpAddr>| address.map_or_else(|| "other".to_owned(), |address| address.to_string());
        addresses.iter().map(|(address, count)| (name(address), *count)).collect()
    }

    /// Counts a failed TLS handshake.
    pub fn handshake_failed(&self, reason: &'static str) {
        *self.failed_handshakes.lock().unpoisoned().entry(reason).or_default() += 1;
    }

    /// Returns the number of failed TLS handshakes by reason.
    #[must_use]
    pub fn failed_handshakes(&self) -> BTreeMap<&'static str, u64> {
        self.failed_handshakes.lock().unpoisoned().clone()
    }

    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the OpenTelemetry name of the network transport.
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
