//! The limits on how often callers may call.

use crate::error::{ConfigError, Problem};
use crate::read::Table;
use std::time::Duration;

/// How many requests of one kind may come; `None` for any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestRates {
    /// In a second.
    pub per_second: Option<u64>,
    /// In a minute.
    pub per_minute: Option<u64>,
}

/// The limits of `mcp.protocol.rate_limits`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Of all callers together.
    pub global: RequestRates,
    /// Of each caller.
    pub user: RequestRates,
    /// Of each tool.
    pub tool: RequestRates,
    /// Of each caller at each tool.
    pub user_tool: RequestRates,
    /// What calls of some tools may use.
    pub tools: Vec<ToolLimits>,
    /// What each caller may spend in a day; `None` for any amount.
    pub user_budget_per_day: Option<u64>,
}

/// What calls of the tools of one pattern may use; `None` for no bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLimits {
    /// `BACKEND` or `BACKEND/NAME`, with `*` and `?`.
    pub pattern: String,
    /// How many may run at once.
    pub max_concurrent: Option<u64>,
    /// How many bytes an answer may have.
    pub max_result: Option<u64>,
    /// How often a caller may make the same call in a row.
    pub max_repeats: Option<u64>,
    /// Number of calls that a caller may make in a minute, in place of the rate for every tool.
    pub calls_per_minute: Option<u64>,
    /// How many calls a caller may make in a day.
    pub calls_per_day: Option<u64>,
    /// What a call costs.
    pub price: u64,
    /// How long a call may take; `None` as its backend says.
    pub timeout: Option<Duration>,
}

/// Check the table `mcp.protocol.rate_limits`, and the table `limits`.
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

    /// G-35 to G-37: the table of the document, and nothing where there is none.
    #[test]
    fn g_35_to_37_every_limit_is_read_and_absent_ones_are_none() {
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
