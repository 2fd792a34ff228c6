//! Export of traces and metrics: the table `gateway.otel`, which only a build with the cargo feature `otel` takes.

use http::HeaderMap;
use http::uri::{PathAndQuery, Uri};

use super::error::{ConfigError, ConfigPlace, Problem};
use super::read::{Table, Text};
use super::values::{self, bad};
use std::time::Duration;

/// Standard variables of OpenTelemetry for the address of a collector: for traces alone, for metrics alone, and for
/// everything.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Address of the collector if none is configured.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// Paths for traces and metrics, below the address of a collector.
const TRACES: &str = "/v1/traces";
const METRICS: &str = "/v1/metrics";
const ADDRESS: &str = "an address like `http://127.0.0.1:4318`";
const LONGEST_NAME: usize = 255;

/// Settings for the export of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otel {
    /// Address that spans are posted to.
    pub endpoint: Uri,
    /// Share of the traces beginning here that are recorded.
    pub sample_ratio: Ratio,
    /// Name of the gateway in traces.
    pub service_name: String,
    /// Headers for the collector; `Debug` hides their values.
    pub headers: HeaderMap,
}

/// Settings for the export of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelMetrics {
    /// Address that metrics are posted to.
    pub endpoint: Uri,
    /// Interval between two exports.
    pub interval: Duration,
    /// Name of the gateway in metrics.
    pub service_name: String,
    /// Headers for the collector; `Debug` hides their values.
    pub headers: HeaderMap,
}

/// Share of all traces, chosen by their ids so that every program that sees an id makes the same choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u64);

impl Ratio {
    /// Creates a share from a fraction of 1.
    #[must_use]
    pub fn new(of: f64) -> Self {
        const WHOLE: u64 = 1 << 63;
        // Rounding near 1 does not matter: 63 bits of an id are compared.
        Self((of.clamp(0.0, 1.0) * WHOLE as f64) as u64)
    }

    /// Returns `true` if a trace belongs to the share.
    #[must_use]
    pub fn takes(self, trace: [u8; 16]) -> bool {
        let low = trace[8..].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        low >> 1 < self.0
    }
}

/// Checks the keys of traces.
pub(super) fn check(table: &Table<'_>) -> Result<Option<Otel>, ConfigError> {
    let enabled = table.flag("enabled")?;
    let (sample_ratio, service_name) = (Ratio::new(table.fraction("sample_ratio")?), service_name(table)?);
    let (headers, given) = (values::headers(table)?, given(table, "endpoint", TRACES)?);
    if !enabled {
        return Ok(None);
    }
    let endpoint = given.map_or_else(|| of_environment(table, TRACES_ENDPOINT, TRACES), Ok)?;
    Ok(Some(Otel { endpoint, sample_ratio, service_name, headers }))
}

/// Checks the keys of metrics.
pub(super) fn check_metrics(table: &Table<'_>) -> Result<Option<OtelMetrics>, ConfigError> {
    let (wanted, interval) = (table.flag("metrics")?, table.duration("metrics_interval")?);
    let own = given(table, "metrics_endpoint", METRICS)?;
    if !wanted {
        return Ok(None);
    }
    let endpoint = match own {
        Some(own) => own,
        None => match given(table, "endpoint", METRICS)? {
            Some(shared) => beside_traces(shared).ok_or_else(|| {
                table.key_error("metrics", Problem::Needs("`metrics_endpoint`: `endpoint` has a path"))
            })?,
            None => of_environment(table, METRICS_ENDPOINT, METRICS)?,
        },
    };
    let (service_name, headers) = (service_name(table)?, values::headers(table)?);
    Ok(Some(OtelMetrics { endpoint, interval, service_name, headers }))
}

fn service_name(table: &Table<'_>) -> Result<String, ConfigError> {
    let name = table.text("service_name")?;
    if let Some(name) = name.as_ref().filter(|name| name.value.is_empty() || name.value.len() > LONGEST_NAME) {
        return Err(bad(table, name, "a name of 1 to 255 bytes"));
    }
    Ok(name.map_or_else(String::new, |name| name.value))
}

/// Returns the address that this key names.
fn given(table: &Table<'_>, key: &str, path: &'static str) -> Result<Option<Uri>, ConfigError> {
    let read = |text: Text<'_>| {
        endpoint(&text.value, path).map_err(|problem| table.document.error(&text.path, text.at, problem))
    };
    table.text(key)?.map(read).transpose()
}

/// Returns the address for metrics beside this one for traces. Returns `None` if it has no path of the protocol.
fn beside_traces(traces: Uri) -> Option<Uri> {
    let path = traces.path().strip_suffix(TRACES).map(|base| format!("{base}{METRICS}"));
    let path = path.or_else(|| traces.path().ends_with(METRICS).then(|| traces.path().to_owned()))?;
    let mut parts = traces.into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn of_environment(table: &Table<'_>, own: &'static str, path: &'static str) -> Result<Uri, ConfigError> {
    let variable = |name: &str| (table.document.env)(name).filter(|value| !value.is_empty());
    let at = |name: &'static str| move |problem| ConfigError::new(ConfigPlace::variable(name), problem);
    if let Some(address) = variable(own) {
        return endpoint(&address, path).map_err(at(own));
    }
    match variable(ENDPOINT) {
        // Unlike the address of a single signal, this one is the base below which the paths of all signals lie.
        Some(address) => endpoint(&format!("{}{path}", address.trim_end_matches('/')), path).map_err(at(ENDPOINT)),
        None => endpoint(DEFAULT_ENDPOINT, path).map_err(at(ENDPOINT)),
    }
}

fn endpoint(text: &str, path: &'static str) -> Result<Uri, Problem> {
    let bad = || Problem::BadHiddenValue(ADDRESS);
    let url = text.parse::<Uri>().map_err(|_| bad())?;
    let authority = url.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(bad)?;
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let bad_port = !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0);
    if authority.as_str().contains('@') || text.contains('#') || bad_port {
        return Err(bad());
    }
    match url.scheme_str().map(str::to_ascii_lowercase).as_deref() {
        Some("http") => {}
        Some("https") => {
            let remedy = "use an `http://` address, as that of a collector on this machine".to_owned();
            return Err(Problem::NotBuilt { feature: "a collector behind `https://` is", remedy });
        }
        _ => return Err(bad()),
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() {
        return Ok(url);
    }
    let mut parts = url.into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static(path));
    Uri::from_parts(parts).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_gets_the_one_of_traces() {
        for (given, posted) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("http://box/otlp/v1/traces", "http://box/otlp/v1/traces"),
        ] {
            assert_eq!(endpoint(given, TRACES).unwrap().to_string(), posted);
        }
        for bad in
            ["", "localhost:4318", "ftp://h", "http://", "http://u:p@h", "http://h:0", "http://h:x", "http://h/#a"]
        {
            assert_eq!(endpoint(bad, TRACES), Err(Problem::BadHiddenValue(ADDRESS)), "{bad}");
        }
        assert!(matches!(endpoint("https://h", METRICS), Err(Problem::NotBuilt { .. })));
    }

    #[test]
    fn metrics_go_beside_traces() {
        for (traces, metrics) in [
            ("http://box:1/v1/traces", Some("http://box:1/v1/metrics")),
            ("http://box/otlp/v1/traces", Some("http://box/otlp/v1/metrics")),
            ("http://box:1/v1/metrics", Some("http://box:1/v1/metrics")),
            ("http://box/spans", None),
        ] {
            let found = beside_traces(traces.parse().unwrap()).map(|url| url.to_string());
            assert_eq!(found.as_deref(), metrics);
        }
    }

    #[test]
    fn a_ratio_takes_its_part_of_all_ids() {
        let id = |low: u64| {
            let mut trace = [0xff; 16];
            trace[8..].copy_from_slice(&low.to_be_bytes());
            trace
        };
        assert!(Ratio::new(1.0).takes(id(u64::MAX)) && !Ratio::new(0.0).takes(id(0)));
        let half = Ratio::new(0.5);
        assert!(half.takes(id(u64::MAX / 2)) && !half.takes(id(u64::MAX / 2 + 1)));
    }
}
