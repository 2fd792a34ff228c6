//! Metrics of calls, operations and sessions as named families of points. `/metrics` and the OTLP exporter both render
//! them.

use crate::call_metrics::CallMetrics;
use signalbox_engine::labelled_durations::BucketReading;
use signalbox_engine::operation_metrics::OperationMetrics;
use signalbox_engine::tool_metrics::ToolReading;
use signalbox_runtime::Gateway;

/// Labels of a point with their values. Names follow OpenTelemetry, with dots where Prometheus has underscores.
pub type MetricLabels = Vec<(&'static str, String)>;

/// Metric with all its points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricFamily {
    /// Name in the Prometheus text format.
    pub name: &'static str,
    pub otlp_name: &'static str,
    /// Description of the metric.
    pub help: &'static str,
    /// Points, one per set of labels.
    pub points: Points,
}

/// Points of a family, by their type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Points {
    /// Counters that only grow.
    Counters(Vec<(MetricLabels, u64)>),
    /// Histograms of durations in seconds.
    Durations(Vec<(MetricLabels, BucketReading)>),
}

/// Returns the metrics of tool calls (G-28 to G-30).
#[must_use]
pub fn of_tools(tools: &[ToolReading]) -> [MetricFamily; 3] {
    let by_status = || {
        let of_tool = |tool: &'_ ToolReading| {
            let id = tool.tool.to_string();
            let labelled = move |(status, took): (&'static str, BucketReading)| {
                (vec![("tool_id", id.clone()), ("status", status.to_owned())], took)
            };
            tool.took.clone().into_iter().map(labelled)
        };
        tools.iter().flat_map(of_tool)
    };
    let warnings = |tool: &ToolReading| {
        let labels = |kind: &str| vec![("tool_id", tool.tool.to_string()), ("warning_type", kind.to_owned())];
        [(labels("slow_execution"), tool.slow), (labels("high_memory"), tool.high_memory)]
    };
    [
        MetricFamily {
            name: "mcp_tool_execution_duration",
            otlp_name: "mcp_tool_execution_duration",
            help: "Seconds that calls of a tool took.",
            points: Points::Durations(by_status().collect()),
        },
        MetricFamily {
            name: "mcp_tool_invocations_total",
            otlp_name: "mcp_tool_invocations_total",
            help: "Ended calls of a tool, by status.",
            points: Points::Counters(by_status().map(|(labels, took)| (labels, took.count)).collect()),
        },
        MetricFamily {
            name: "mcp_performance_warnings_total",
            otlp_name: "mcp_performance_warnings_total",
            help: "Calls of a tool that took too long, or after which its process held too much memory.",
            points: Points::Counters(tools.iter().flat_map(warnings).collect()),
        },
    ]
}

/// Returns the four durations of the OpenTelemetry semantic conventions for MCP.
#[must_use]
pub fn of_operations(calls: &CallMetrics, gateway: &Gateway) -> [MetricFamily; 4] {
    let counters = &gateway.counters;
    let lasted =
        |(transport, took): (&'static str, BucketReading)| (vec![("network.transport", transport.to_owned())], took);
    [
        MetricFamily {
            name: "mcp_server_operation_duration_seconds",
            otlp_name: "mcp.server.operation.duration",
            help: "Seconds that requests of clients took.",
            points: operations(calls.operations()),
        },
        MetricFamily {
            name: "mcp_client_operation_duration_seconds",
            otlp_name: "mcp.client.operation.duration",
            help: "Seconds that backends took for requests of the gateway.",
            points: operations(&counters.client_operations),
        },
        MetricFamily {
            name: "mcp_server_session_duration_seconds",
            otlp_name: "mcp.server.session.duration",
            help: "Seconds that sessions of clients lasted.",
            points: Points::Durations(counters.server_sessions.read().into_iter().map(lasted).collect()),
        },
        MetricFamily {
            name: "mcp_client_session_duration_seconds",
            otlp_name: "mcp.client.session.duration",
            help: "Seconds that connections to backends lasted.",
            points: Points::Durations(counters.client_sessions.read().into_iter().map(lasted).collect()),
        },
    ]
}

fn operations(operations: &OperationMetrics) -> Points {
    let labelled = |((method, error), took): ((&'static str, &'static str), BucketReading)| {
        let mut labels = vec![("mcp.method.name", method.to_owned())];
        labels.extend((!error.is_empty()).then(|| ("error.type", error.to_owned())));
        (labels, took)
    };
    Points::Durations(operations.read().into_iter().map(labelled).collect())
}
