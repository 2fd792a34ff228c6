//! Index of the requests in flight by exchange, for cancellation. Calls that are not cancelled cost nothing: the index
//! is built on the first lookup and then only extended.

use crate::correlation::Correlator;
use crate::keys::{ExchangeId, KeyMap};

/// Maximum number of requests searched without an index.
const FEW: usize = 16;
/// Maximum number of stale entries beyond the requests in flight.
const LEFT_OVER: usize = 1024;

/// Index of one connection.
#[derive(Default, Debug)]
pub struct CallIndex {
    ids: KeyMap<ExchangeId, u64>,
    /// Requests below this id are indexed.
    until: u64,
}

impl CallIndex {
    /// Returns the request in flight of this exchange. `of` reads the exchange of a request.
    pub fn find<T>(
        &mut self,
        calls: &Correlator<T>,
        wanted: ExchangeId,
        of: impl Fn(&T) -> Option<ExchangeId>,
    ) -> Option<u64> {
        if calls.len() <= FEW {
            return calls.find(|origin| of(origin) == Some(wanted));
        }
        self.update(calls, &of);
        let fits = |id: &u64| calls.get(*id).is_some_and(|one| of(&one.origin) == Some(wanted));
        self.ids.get(&wanted).copied().filter(fits)
    }

    fn update<T>(&mut self, calls: &Correlator<T>, of: &impl Fn(&T) -> Option<ExchangeId>) {
        let (next, many) = (calls.next_id(), calls.len());
        let fresh = usize::try_from(next.saturating_sub(self.until)).unwrap_or(usize::MAX);
        if fresh > many || self.ids.len() > 4 * many + LEFT_OVER {
            self.ids.clear();
            self.ids.extend(calls.iter().filter_map(|(id, one)| Some((of(&one.origin)?, id))));
        } else {
            let new = (self.until..next).filter_map(|id| Some((of(&calls.get(id)?.origin)?, id)));
            self.ids.extend(new);
        }
        self.until = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    const MINUTE: Duration = Duration::from_secs(60);

    /// A mass disconnect looks at each request a few times, not at all of them for each.
    #[test]
    fn cancelling_many_calls_looks_at_each_a_few_times() {
        const CALLS: u64 = 10_000;
        let (now, looks) = (Instant::now(), Cell::new(0_u64));
        let mut calls = Correlator::starting_at(77);
        let mut index = CallIndex::default();
        let of = |origin: &u64| {
            looks.set(looks.get() + 1);
            Some(ExchangeId(*origin))
        };
        for number in 0..CALLS {
            calls.open(number, now, MINUTE);
        }
        for number in (0..CALLS).rev() {
            let id = index.find(&calls, ExchangeId(number), of).unwrap();
            assert_eq!(calls.give_up(id).unwrap().origin, number);
            assert_eq!(index.find(&calls, ExchangeId(number), of), None);
        }
        assert!(looks.get() < 10 * CALLS, "{} looks", looks.get());
    }

    #[test]
    fn what_came_since_is_found_and_what_is_over_is_not() {
        let now = Instant::now();
        let (mut calls, mut index) = (Correlator::default(), CallIndex::default());
        let of = |origin: &u64| Some(ExchangeId(*origin)).filter(|_| *origin > 0);
        for round in 0..20 {
            let ids: Vec<u64> = (0..100).map(|number| calls.open(round * 100 + number, now, MINUTE)).collect();
            let wanted = round * 100 + 50;
            assert_eq!(index.find(&calls, ExchangeId(wanted), of), Some(ids[50]));
            for id in &ids[..90] {
                calls.close(Some(*id)).unwrap();
            }
            assert_eq!(index.find(&calls, ExchangeId(wanted), of), None);
        }
        assert!(index.ids.len() <= 4 * calls.len() + LEFT_OVER + 100);
    }
}
