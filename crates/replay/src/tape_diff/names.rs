//! Interns the methods, subjects and outcomes of calls.

use std::collections::HashMap;
use std::sync::Arc;

/// Method with its subject.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Name {
    pub method: Arc<str>,
    pub subject: Option<Arc<str>>,
}

/// Names by index, shared between both tapes.
#[derive(Default, Debug)]
pub(super) struct Names {
    names: Vec<Name>,
    numbers: HashMap<Name, u32>,
    outcomes: Vec<Arc<str>>,
}

impl Names {
    /// Returns the index of a name, adding it if needed.
    pub fn number(&mut self, method: &str, subject: Option<&str>) -> u32 {
        let name = Name { method: method.into(), subject: subject.map(Arc::from) };
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// Returns the name at an index.
    pub fn name(&self, number: u32) -> Name {
        let found = self.names.get(number as usize).cloned();
        found.unwrap_or_else(|| Name { method: "unknown".into(), subject: None })
    }

    /// Returns the shared copy of an outcome's name.
    pub fn outcome(&mut self, word: &str) -> Arc<str> {
        // A linear search will do: there are about ten outcomes.
        if let Some(known) = self.outcomes.iter().find(|known| &***known == word) {
            return Arc::clone(known);
        }
        let new: Arc<str> = word.into();
        if self.outcomes.len() < 100 {
            self.outcomes.push(Arc::clone(&new));
        }
        new
    }
}
