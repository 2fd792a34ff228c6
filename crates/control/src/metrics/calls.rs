//! Metrics of tool calls under the names of the governed dialect (G-28 to G-30) and of Sentinel (NO-12), and durations
//! of operations and sessions under the names of OpenTelemetry's semantic conventions for MCP.

use super::page::Page;
use signalbox_assembly::assemble::App;
use signalbox_assembly::metric_family;
use signalbox_engine::labelled_durations::BucketReading;
use signalbox_engine::tool_metrics::ToolReading;
use signalbox_runtime::status::BackendStatus;

/// Adds the metrics of each tool.
pub(super) fn tools(page: &mut Page, app: &App, backends: &[BackendStatus]) {
    let all = app.calls.tools();
    metric_family::of_tools(&all).iter().for_each(|family| page.add(family));
    if app.calls.has_sentinel_names() {
        sentinel(page, &all, backends);
    }
}

fn sentinel(page: &mut Page, tools: &[ToolReading], backends: &[BackendStatus]) {
    let mut total = page.family("sentinel_requests_total", "counter", "Ended calls of a tool, by status.");
    for tool in tools {
        for (status, took) in &tool.took {
            total.sample(&[("tool", &tool.tool), ("status", status)], took.count);
        }
    }
    let mut duration =
        page.family("sentinel_request_duration_seconds", "histogram", "Seconds that calls of a tool took.");
    for tool in tools {
        let mut each = tool.took.iter().map(|(_, took)| took.clone());
        if let Some(mut all) = each.next() {
            each.for_each(|more: BucketReading| all.merge(&more));
            duration.histogram(&[("tool", &tool.tool)], &all);
        }
    }
    let mut errors = page.family("sentinel_errors_total", "counter", "Calls of a tool that failed, by kind of error.");
    for tool in tools {
        for (kind, count) in &tool.errors {
            errors.sample(&[("tool", &tool.tool), ("error_type", kind)], *count);
        }
    }
    let mut healthy = page.family("sentinel_backend_healthy", "gauge", "1 while the backend serves and is well.");
    for backend in backends {
        let unwell = backend.health.as_ref().is_some_and(|health| health.state == "unwell");
        let open = backend.breaker.as_ref().is_some_and(|breaker| breaker.state != "closed");
        let serves = matches!(backend.state, "up" | "asleep") && !unwell && !open;
        healthy.sample(&[("backend", &backend.name)], u64::from(serves));
    }
    let mut limited = page.family("sentinel_rate_limit_hits_total", "counter", "Calls of a tool that a limit refused.");
    for tool in tools {
        let hits = tool.errors.iter().find(|(kind, _)| *kind == "rate_limited").map_or(0, |(_, count)| *count);
        limited.sample(&[("tool", &tool.tool)], hits);
    }
}

/// Adds the four durations of the semantic conventions.
pub(super) fn operations(page: &mut Page, app: &App) {
    metric_family::of_operations(&app.calls, &app.gateway).iter().for_each(|family| page.add(family));
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::labelled_durations::{LabelledDurations, TOOL_BOUNDS_US};
    use std::time::Duration;

    fn tool() -> ToolReading {
        let took = LabelledDurations::new(TOOL_BOUNDS_US);
        took.add("success", Duration::from_millis(30));
        took.add("rate_limited", Duration::ZERO);
        ToolReading {
            tool: "a__t".into(),
            took: took.read(),
            errors: vec![("rate_limited", 1)],
            slow: 1,
            high_memory: 0,
        }
    }

    fn has(page: Page, lines: &[&str]) {
        let text = page.into_text();
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line}\n{text}");
        }
    }

    /// Proves G-28, G-29 and G-30.
    #[test]
    fn tools_are_shown_under_the_names_of_the_dialect() {
        let mut page = Page::default();
        metric_family::of_tools(&[tool()]).iter().for_each(|family| page.add(family));
        has(
            page,
            &[
                "# TYPE mcp_tool_execution_duration histogram",
                r#"mcp_tool_execution_duration_bucket{tool_id="a__t",status="success",le="0.025"} 0"#,
                r#"mcp_tool_execution_duration_bucket{tool_id="a__t",status="success",le="0.05"} 1"#,
                r#"mcp_tool_execution_duration_bucket{tool_id="a__t",status="success",le="+Inf"} 1"#,
                r#"mcp_tool_execution_duration_sum{tool_id="a__t",status="success"} 0.03"#,
                r#"mcp_tool_execution_duration_count{tool_id="a__t",status="rate_limited"} 1"#,
                r#"mcp_tool_invocations_total{tool_id="a__t",status="success"} 1"#,
                r#"mcp_performance_warnings_total{tool_id="a__t",warning_type="slow_execution"} 1"#,
                r#"mcp_performance_warnings_total{tool_id="a__t",warning_type="high_memory"} 0"#,
            ],
        );
    }

    /// Proves NO-12.
    #[test]
    fn tools_are_shown_under_the_names_of_sentinel() {
        let mut page = Page::default();
        sentinel(&mut page, &[tool()], &[]);
        has(
            page,
            &[
                r#"sentinel_requests_total{tool="a__t",status="rate_limited"} 1"#,
                r#"sentinel_request_duration_seconds_count{tool="a__t"} 2"#,
                r#"sentinel_request_duration_seconds_bucket{tool="a__t",le="0.001"} 1"#,
                r#"sentinel_errors_total{tool="a__t",error_type="rate_limited"} 1"#,
                r#"sentinel_rate_limit_hits_total{tool="a__t"} 1"#,
                "# TYPE sentinel_backend_healthy gauge",
            ],
        );
    }
}
