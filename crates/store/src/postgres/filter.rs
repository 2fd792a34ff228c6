//! Translates a query into SQL conditions.

use super::row::escape;
use crate::content::{FINISHED, MESSAGE, client_side_codes};
use crate::tape_row::TapeRow;
use ::postgres::types::ToSql;
use signalbox_engine::record::Query;

type Value = Box<dyn ToSql + Sync + Send>;

/// SQL conditions on rows `e`, and their parameters.
pub struct PostgresFilter {
    conditions: Vec<String>,
    values: Vec<Value>,
    /// Condition on the exchange of a row, `x`, if the query has one.
    pub ending: Option<String>,
}

impl PostgresFilter {
    /// Translates a query for the rows of one tape.
    pub fn read(tape: &TapeRow, query: &Query, text: bool) -> Self {
        let mut filter = Self { conditions: Vec::new(), values: Vec::new(), ending: None };
        filter.add("e.tape = $", tape.number);
        // Add it first, so that a query for exchanges alone has the same parameter numbers.
        filter.ending(query);
        filter.numbers(tape, query);
        filter.names(query);
        if query.only_ends {
            filter.conditions.push(format!("e.what = {FINISHED}"));
        }
        if query.client_side {
            filter.conditions.push(format!("e.what IN ({})", client_side_codes()));
        }
        if text {
            filter.conditions.push(format!("e.what >= {MESSAGE} AND e.form <> 0"));
        }
        filter
    }

    /// Adds a condition with one parameter, which replaces the `$`.
    fn add(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) {
        let condition = self.value(condition, value);
        self.conditions.push(condition);
    }

    fn value(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) -> String {
        self.values.push(Box::new(value));
        condition.replace('$', &format!("${}", self.values.len()))
    }

    fn numbers(&mut self, tape: &TapeRow, query: &Query) {
        if let Some(session) = query.session {
            self.add("e.session = $", session as i64);
        }
        if let Some(exchange) = query.exchange {
            self.add("e.exchange = $", exchange as i64);
        }
        if let Some(code) = query.error_code {
            self.add("e.error_code = $", code);
        }
        // If the clock of the tape went backwards, the time of each row is compared.
        if let Some(since) = query.since.filter(|_| tape.disordered) {
            self.add("e.at >= $", since.min(i64::MAX as u64) as i64);
        }
        if let Some(until) = query.until.filter(|_| tape.disordered) {
            self.add("e.at < $", until.min(i64::MAX as u64) as i64);
        }
    }

    fn names(&mut self, query: &Query) {
        let text = |text: &str| escape(text).into_owned();
        if let Some(subject) = &query.subject {
            self.add("e.subject = $", text(subject));
        }
        if let Some(backend) = &query.backend {
            self.add("e.backend = $", text(backend));
        }
        if let Some(principal) = &query.principal {
            self.add("e.principal = $", text(principal));
        }
        let mut any = Vec::new();
        for method in &query.methods {
            any.push(match method.strip_suffix('*') {
                Some(beginning) => self.value("starts_with(e.method, $)", text(beginning)),
                None => self.value("e.method = $", text(method)),
            });
        }
        if !any.is_empty() {
            self.conditions.push(format!("({})", any.join(" OR ")));
        }
    }

    fn ending(&mut self, query: &Query) {
        let mut how = Vec::new();
        if let Some(outcome) = &query.outcome {
            how.push(self.value("x.outcome = $", escape(outcome).into_owned()));
        }
        if let Some(least) = query.slower_than {
            how.push(self.value("x.took >= $", least.min(i64::MAX as u64) as i64));
        }
        if how.is_empty() {
            return;
        }
        let how = how.join(" AND ");
        self.conditions.push(format!(
            "EXISTS (SELECT 1 FROM exchanges x WHERE x.tape = e.tape AND x.exchange = e.exchange AND {how})"
        ));
        self.ending = Some(how);
    }

    /// Returns all conditions, joined with `AND`.
    pub fn sql(&self) -> String {
        self.conditions.join(" AND ")
    }

    /// Returns the parameters, to which the caller may add more.
    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }

    /// Returns the parameters of the query for exchanges: the tape and the conditions on their end.
    pub fn ending_values(&self, query: &Query) -> Vec<&(dyn ToSql + Sync)> {
        let count = 1 + usize::from(query.outcome.is_some()) + usize::from(query.slower_than.is_some());
        self.values[..count].iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
