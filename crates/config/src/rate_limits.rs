//! Limits on the rate, number and cost of calls.

use crate::error::{ConfigError, Problem};
use crate::read::Table;
use std::time::Duration;

/// Rates of requests of one kind. `None` stands for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestRates {
    pub per_second: Option<u64>,
    pub per_minute: Option<u64>,
}

/// Limits of the table `mcp.protocol.rate_limits`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Rates of all callers together.
    pub global: RequestRates,
    /// Rates of each caller.
    pub user: RequestRates,
    /// Rates of each tool.
    pub tool: RequestRates,
    /// Rates of each caller at each tool.
    pub user_tool: RequestRates,
    /// Limits on the calls of some tools.
    pub tools: Vec<ToolLimits>,
    /// Amount that each caller may spend per day. `None` stands for no limit.
    pub user_budget_per_day: Option<u64>,
}

/// Limits on the calls of tools that match one pattern. `None` stands for no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLimits {
    /// `BACKEND` or `BACKEND/NAME`, with `*` and `?`.
    pub pattern: String,
    /// Maximum number of calls that run at once.
    pub max_concurrent: Option<u64>,
    /// Maximum size of an answer, in bytes.
    pub max_result: Option<u64>,
    /// Maximum number of times a caller may make the same call in a row.
    pub max_repeats: Option<u64>,
    /// Number of calls that a caller may make in a minute, in place of the rate for every tool.
    pub calls_per_minute: Option<u64>,
    /// Maximum number of calls per caller and day.
    pub calls_per_day: Option<u64>,
    /// Cost of one call.
    pub price: u64,
    /// Time limit for a call. `None` leaves the limit of the backend.
    pub timeout: Option<Duration>,
}

/// Checks the table `mcp.protocol.rate_limits`, and the table `limits`.
pub(crate) fn check(table: &Table<'_>, tools: &Table<'_>) -> Result<RateLimits, ConfigError> {
    let limit = |key: &str| unless_zero(table, key);
    let rates = |whose: &str| {
        Ok(RequestRates {
            per_second: limit(&format!("{whose}_requests_per_second"))?,
            per_minute: limit(&format!("{whose}_requests_per_minute"))?,
        })
    };
    Ok(RateLimits {
        global: rates("global")?,
        user: rates("user")?,
        tool: rates("tool")?,
        user_tool: rates("user_tool")?,
        tools: tools
            .entries
            .iter()
            .map(|entry| of_tools(&entry.key, &tools.inside(entry)?))
            .collect::<Result<_, _>>()?,
        user_budget_per_day: limit("user_budget_per_day")?,
    })
}

fn of_tools(pattern: &str, table: &Table<'_>) -> Result<ToolLimits, ConfigError> {
    let (backend, name) = pattern.split_once('/').unwrap_or((pattern, "*"));
    if backend.is_empty() || name.is_empty() {
        let expected = "a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`";
        return Err(table.error(Problem::BadHiddenValue(expected)));
    }
    Ok(ToolLimits {
        pattern: pattern.to_owned(),
        max_concurrent: unless_zero(table, "max_concurrent")?,
        max_result: unless_zero(table, "max_result")?,
        max_repeats: unless_zero(table, "max_repeats")?,
        calls_per_minute: unless_zero(table, "calls_per_minute")?,
        calls_per_day: unless_zero(table, "calls_per_day")?,
        price: table.count("price")?,
        timeout: table.seconds("timeout")?,
    })
}

fn unless_zero(table: &Table<'_>, key: &str) -> Result<Option<u64>, ConfigError> {
    Ok(Some(table.count::<u64>(key)?).filter(|limit| *limit > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<RateLimits, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.rate_limits)
    }

    /// The table `mcp.protocol.rate_limits`, and nothing where there is none.
    /// Proves G-35, G-36 and G-37.
    #[test]
    fn every_limit_is_read_and_absent_ones_are_none() {
        assert_eq!(load("").unwrap(), RateLimits::default());
        let limits = load(
            "[mcp.protocol.rate_limits]\nglobal_requests_per_second = 1000\nglobal_requests_per_minute = 60000\n\
             user_requests_per_second = 10\nuser_requests_per_minute = 600\ntool_requests_per_second = 5\n\
             tool_requests_per_minute = 300\n",
        );
        let rates =
            |per_second, per_minute| RequestRates { per_second: Some(per_second), per_minute: Some(per_minute) };
        let (global, user, tool) = (rates(1_000, 60_000), rates(10, 600), rates(5, 300));
        assert_eq!(limits.unwrap(), RateLimits { global, user, tool, ..RateLimits::default() });
        assert_eq!(load("[mcp.protocol.rate_limits]\nuser_requests_per_second = 0\n").unwrap(), RateLimits::default());
        assert!(load("[mcp.protocol.rate_limits]\nuser_requests_per_second = -1\n").is_err());
    }

    #[test]
    fn bounds_of_tools_are_read_by_pattern() {
        let text = "[limits.'bank/pay']\nmax_concurrent = 2\nmax_result = 4096\nmax_repeats = 3\ncalls_per_minute = 7\ncalls_per_day = 10\nprice = 5\ntimeout = \"5s\"\n\
                    [mcp.protocol.rate_limits]\nuser_budget_per_day = 100\n";
        let limits = load(text).unwrap();
        let bank = ToolLimits {
            pattern: "bank/pay".to_owned(),
            max_concurrent: Some(2),
            max_result: Some(4096),
            max_repeats: Some(3),
            calls_per_minute: Some(7),
            calls_per_day: Some(10),
            price: 5,
            timeout: Some(Duration::from_secs(5)),
        };
        assert_eq!((limits.tools, limits.user_budget_per_day), (vec![bank], Some(100)));
        assert!(load("[limits.'/x']\nprice = 1\n").is_err());
    }
}
