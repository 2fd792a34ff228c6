//! Traffic since the start and in the last minute.

use serde::Serialize;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::metrics::{MethodMetrics, Series};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Interval between two samples.
const INTERVAL: Duration = Duration::from_secs(10);
/// Number of samples kept. Together they cover one minute.
const SAMPLES: usize = 6;

/// Traffic figures in total, by backend and by method.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// Figures of all requests.
    pub total: Figures,
    /// Figures of requests that went to a backend, by its name.
    pub backends: BTreeMap<Box<str>, Figures>,
    /// Figures by method name.
    pub methods: BTreeMap<&'static str, Figures>,
}

/// Number, outcomes and durations of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Number of finished requests.
    pub calls: u64,
    /// Number of requests that did not end with a plain result.
    pub errors: u64,
    /// Median duration in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the duration.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the duration.
    pub p99_ms: Option<f64>,
    /// Figures of the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent: Option<Box<Recently>>,
}

/// Figures of the last minute, or of the time since the start if that is shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recently {
    /// Length of the period in seconds.
    pub seconds: f64,
    /// Finished requests per second.
    pub per_second: f64,
    /// Figures of the period.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Totals at one moment.
#[derive(Clone, Default)]
struct Totals {
    total: Series,
    backends: BTreeMap<Box<str>, Series>,
    methods: BTreeMap<&'static str, Series>,
}

impl Totals {
    fn read(metrics: &MethodMetrics) -> Self {
        let mut totals = Self::default();
        for ((method, backend), series) in metrics.read() {
            totals.total.merge(&series);
            totals.methods.entry(method).or_default().merge(&series);
            if !backend.is_empty() {
                totals.backends.entry(backend).or_default().merge(&series);
            }
        }
        totals
    }
}

/// Samples of the totals, by which the last minute is separated from the time before.
pub(super) struct TrafficSampler {
    metrics: Arc<MethodMetrics>,
    samples: Mutex<VecDeque<(Instant, Totals)>>,
}

impl TrafficSampler {
    /// Starts sampling, which continues until the returned value is dropped.
    pub(super) fn follow(metrics: &Arc<MethodMetrics>) -> Arc<Self> {
        let recent = Arc::new(Self::new(metrics, Instant::now()));
        let weak = Arc::downgrade(&recent);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(recent) = weak.upgrade() else { return };
                recent.sample(Instant::now());
            }
        });
        recent
    }

    fn new(metrics: &Arc<MethodMetrics>, now: Instant) -> Self {
        let first = (now, Totals::read(metrics));
        Self { metrics: Arc::clone(metrics), samples: Mutex::new(VecDeque::from([first])) }
    }

    fn sample(&self, now: Instant) {
        let totals = Totals::read(&self.metrics);
        let mut samples = self.samples.lock().unpoisoned();
        samples.push_back((now, totals));
        while samples.len() > SAMPLES {
            samples.pop_front();
        }
    }

    /// Returns the current figures.
    pub(super) fn traffic(&self) -> Traffic {
        self.traffic_at(Instant::now())
    }

    fn traffic_at(&self, now: Instant) -> Traffic {
        let totals = Totals::read(&self.metrics);
        let samples = self.samples.lock().unpoisoned();
        let (then, before) = samples.front().cloned().unwrap_or((now, Totals::default()));
        drop(samples);
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        let none = Series::default();
        let of = |now: &Series, then: Option<&Series>| figures(now, then.unwrap_or(&none), seconds);
        Traffic {
            total: of(&totals.total, Some(&before.total)),
            backends: totals
                .backends
                .iter()
                .map(|(name, one)| (name.clone(), of(one, before.backends.get(name))))
                .collect(),
            methods: totals.methods.iter().map(|(name, one)| (*name, of(one, before.methods.get(name)))).collect(),
        }
    }
}

fn figures(now: &Series, then: &Series, seconds: f64) -> Figures {
    let took = now.took.since(&then.took);
    let calls = now.count().saturating_sub(then.count());
    let errors = now.errors().saturating_sub(then.errors());
    let recent = Recently {
        seconds: rounded(seconds),
        per_second: if seconds > 0.0 { rounded(calls as f64 / seconds) } else { 0.0 },
        figures: plain(calls, errors, |share| took.quantile(share)),
    };
    Figures { recent: Some(Box::new(recent)), ..plain(now.count(), now.errors(), |share| now.took.quantile(share)) }
}

fn plain(calls: u64, errors: u64, quantile: impl Fn(f64) -> Option<u64>) -> Figures {
    let ms = |share| quantile(share).map(|us| us as f64 / 1000.0);
    Figures { calls, errors, p50_ms: ms(0.5), p95_ms: ms(0.95), p99_ms: ms(0.99), recent: None }
}

/// Rounds to three decimals, because further digits would not be accurate.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::fact::{FinishedFact, Outcome};
    use signalbox_engine::{Caller, ExchangeId, Fact, FactSink as _, SessionKey};
    use signalbox_wire::Era;

    fn call(metrics: &MethodMetrics, backend: Option<&str>, outcome: Outcome, ms: u64) {
        metrics.fact(&Fact::Finished(Arc::new(FinishedFact {
            at: Instant::now(),
            session: SessionKey(1),
            caller: Caller::anonymous("http"),
            client: None,
            operation: ExchangeId(1),
            round: 1,
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: "tools/call".into(),
            subject: None,
            backend: backend.map(Into::into),
            outcome,
            took: Duration::from_millis(ms),
            bytes_in: 1,
            bytes_out: 1,
            trace: None,
            unreached: None,
        })));
    }

    /// Proves S-19 and S-20.
    #[test]
    fn the_last_minute_is_told_apart_from_the_time_before() {
        let metrics = Arc::new(MethodMetrics::default());
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let recent = TrafficSampler::new(&metrics, start);
        for _ in 0..30 {
            call(&metrics, Some("a"), Outcome::Ok, 1);
        }
        call(&metrics, None, Outcome::BackendError, 1);
        let early = recent.traffic_at(after(10));
        assert_eq!((early.total.calls, early.total.errors, early.backends.len()), (31, 1, 1));
        let minute = early.backends["a"].recent.as_ref().unwrap();
        assert_eq!((minute.per_second, minute.figures.calls), (3.0, 30));

        for look in 1..=6 {
            recent.sample(after(look * 10));
        }
        for _ in 0..6 {
            call(&metrics, Some("a"), Outcome::Ok, 400);
        }
        let late = recent.traffic_at(after(70));
        let (all, minute) = (&late.backends["a"], late.backends["a"].recent.as_ref().unwrap());
        assert_eq!((all.calls, minute.figures.calls, minute.per_second), (36, 6, 0.1));
        assert!(all.p50_ms.unwrap() < 1.1, "{all:?}");
        assert!((minute.figures.p50_ms.unwrap() - 400.0).abs() < 24.0, "{minute:?}");
        let quiet = late.methods["tools/call"].recent.as_ref().unwrap();
        assert_eq!(quiet.figures.errors, 0, "the error lies more than a minute back");
    }
}
