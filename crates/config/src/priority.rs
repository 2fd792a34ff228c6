//! Reads `[[record.priority]]`: calls that are recorded with a share of their own.

use super::error::{ConfigError, Problem};
use super::raw::Value;
use super::read::Table;
use signalbox_tape::glob::Glob;
use signalbox_tape::recorder::{Priorities, Priority, SamplingTrigger};

/// Maximum number of rules.
const MAX_RULES: usize = 64;

/// Reads the rules in the table `record`.
pub(super) fn priorities(record: &Table<'_>, seed: u64, always: SamplingTrigger) -> Result<Priorities, ConfigError> {
    let nodes = match record.entry("priority").map(|entry| &entry.node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    if nodes.len() > MAX_RULES {
        return Err(record.key_error("priority", Problem::BadHiddenValue("at most 64 rules")));
    }
    let known_as = record.known_as.child("priority");
    let mut rules = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let path = record.path.child("priority").item(index);
        let table = Table::new(record.document, node, path, known_as.clone(), node.at)?;
        table.check_keys()?;
        let globs = |key: &str| -> Result<Vec<Glob>, ConfigError> {
            Ok(table.texts(key)?.iter().map(|text| Glob::new(&text.value)).collect())
        };
        rules.push(Priority { methods: globs("methods")?, tools: globs("tools")?, share: table.fraction("share")? });
    }
    Ok(Priorities { rules, seed, always })
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigError, Overrides};
    use signalbox_tape::recorder::Sampling;
    use std::path::Path;

    fn read(text: &str) -> Result<crate::RecordConfig, ConfigError> {
        let overrides = Overrides { data_dir: Some("/nowhere".into()), ..Overrides::default() };
        let loaded = Config::parse(Path::new("signalbox.toml"), text, &|_| None, &overrides);
        loaded.map(|loaded| loaded.config.record)
    }

    /// Proves SO-9.
    #[test]
    fn a_target_and_shares_of_their_own_are_read() {
        let record = read(
            "[record]\nsampling = 'adaptive'\ntarget = 50\n[[record.priority]]\ntools = ['deploy_*']\n\
             [[record.priority]]\nmethods = ['ping']\nshare = 0.01\n",
        )
        .unwrap();
        assert!(matches!(&record.sampling, Sampling::Adaptive { target: 50.0, always, .. } if always.errors));
        let words = "deploy_*: share 1; ping: share 0.01; about 50 a second, and errors";
        assert_eq!(record.recorder().sampling_words(), words);
        assert!(record.priorities.always.errors);
    }

    #[test]
    fn what_is_wrong_with_a_share_of_its_own_is_told_with_its_place() {
        for (text, told) in [
            (
                "[[record.priority]]\nshare = 2\n",
                "signalbox.toml:2:9: record.priority.share: expected a number from 0 to 1",
            ),
            (
                "[[record.priority]]\ntool = ['x']\n",
                "signalbox.toml:2:1: record.priority.tool: unknown key; did you mean `tools`?",
            ),
            ("[record]\npriority = 7\n", "record.priority: expected a list of tables"),
            ("[record]\npriority = [7]\n", "record.priority[0]: expected a table"),
            (
                "[record]\nsampling = 'adaptive'\ntarget = 0\n",
                "record.target: expected a whole number from 1 to 1000000",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
