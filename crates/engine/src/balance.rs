//! Load balancing among a backend's addresses, for each message or connection.

/// Strategy for choosing the next address. Every strategy avoids addresses that are known to fail, as long as another
/// one is left.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Balance {
    /// Each address in turn.
    #[default]
    RoundRobin,
    /// Each address in turn, in proportion to its weight.
    Weighted,
    /// The address with the fewest requests in flight.
    LeastConnections,
    /// A random address, each with the same probability.
    Random,
    /// The first healthy address, in configured order.
    HealthyFirst,
}

impl Balance {
    /// The words of the configuration, in the order of the variants.
    pub const WORDS: &'static [&'static str] =
        &["round_robin", "weighted", "least_connections", "random", "healthy_first"];

    /// Returns the strategy named by a word of the configuration.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "round_robin" => Self::RoundRobin,
            "weighted" => Self::Weighted,
            "least_connections" => Self::LeastConnections,
            "random" => Self::Random,
            "healthy_first" => Self::HealthyFirst,
            _ => return None,
        })
    }
}

/// Address that may be chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// False if the address is known to fail.
    pub well: bool,
    /// True if the address was tried already and must not be chosen again.
    pub tried: bool,
    /// Number of requests in flight at the address.
    pub busy: usize,
    /// Share of choices relative to the other addresses.
    pub weight: u32,
}

/// Turn state of the strategies.
#[derive(Clone, Default, Debug)]
pub struct Turns {
    last: Option<usize>,
    /// Credit of each address, for the weighted strategy.
    owed: Vec<i64>,
}

impl Turns {
    /// Chooses an address. `chance` is a random number. `None` if all were tried.
    pub fn choose(&mut self, balance: Balance, all: &[Candidate], chance: u64) -> Option<usize> {
        let untried = || (0..all.len()).filter(|at| all.get(*at).is_some_and(|one| !one.tried));
        let well: Vec<usize> = untried().filter(|at| all.get(*at).is_some_and(|one| one.well)).collect();
        let among = if well.is_empty() { untried().collect() } else { well };
        let chosen = match balance {
            Balance::RoundRobin => self.next(&among)?,
            Balance::HealthyFirst => *among.first()?,
            Balance::Random => {
                let place = chance.checked_rem(u64::try_from(among.len()).ok()?)?;
                *among.get(usize::try_from(place).ok()?)?
            }
            Balance::LeastConnections => {
                let busy = |at: &usize| all.get(*at).map_or(usize::MAX, |one| one.busy);
                let least = among.iter().map(busy).min()?;
                let idlest: Vec<usize> = among.into_iter().filter(|at| busy(at) == least).collect();
                self.next(&idlest)?
            }
            Balance::Weighted => self.owed_most(&among, all)?,
        };
        self.last = Some(chosen);
        Some(chosen)
    }

    /// Returns the first candidate after the last chosen one.
    fn next(&self, among: &[usize]) -> Option<usize> {
        let after = among.iter().find(|at| self.last.is_none_or(|last| **at > last));
        after.or_else(|| among.first()).copied()
    }

    /// Chooses the address with the most credit. Each address earns its weight in every turn and pays the sum of all
    /// weights when it is chosen, which spreads heavy ones evenly.
    fn owed_most(&mut self, among: &[usize], all: &[Candidate]) -> Option<usize> {
        self.owed.resize(all.len(), 0);
        let mut whole = 0;
        let mut most: Option<(i64, usize)> = None;
        for at in among {
            let weight = i64::from(all.get(*at)?.weight);
            let owed = self.owed.get_mut(*at)?;
            *owed += weight;
            whole += weight;
            if most.is_none_or(|(known, _)| *owed > known) {
                most = Some((*owed, *at));
            }
        }
        let (_, chosen) = most?;
        *self.owed.get_mut(chosen)? -= whole;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(weights: &[u32]) -> Vec<Candidate> {
        weights.iter().map(|weight| Candidate { well: true, tried: false, busy: 0, weight: *weight }).collect()
    }

    fn chosen(balance: Balance, all: &[Candidate], times: usize) -> Vec<usize> {
        let mut turns = Turns::default();
        (0..times).map(|chance| turns.choose(balance, all, chance as u64).unwrap()).collect()
    }

    /// Each of `round_robin`, `weighted`, `least_connections`, `random` and `healthy_first`.
    /// Proves SO-15.
    #[test]
    fn each_way_to_choose_does_what_its_name_says() {
        let mut all = candidates(&[3, 1, 1]);
        assert_eq!(chosen(Balance::RoundRobin, &all, 5), [0, 1, 2, 0, 1]);
        assert_eq!(chosen(Balance::Weighted, &all, 5), [0, 1, 0, 2, 0]);
        assert_eq!(chosen(Balance::HealthyFirst, &all, 3), [0, 0, 0]);
        assert_eq!(chosen(Balance::Random, &all, 4), [0, 1, 2, 0], "as chance has it");
        assert_eq!(chosen(Balance::LeastConnections, &all, 4), [0, 1, 2, 0], "in turn among equals");
        all[0].busy = 2;
        all[1].busy = 1;
        assert_eq!(chosen(Balance::LeastConnections, &all, 2), [2, 2]);
        all[0].well = false;
        assert_eq!(chosen(Balance::HealthyFirst, &all, 2), [1, 1]);
        assert_eq!(chosen(Balance::RoundRobin, &all, 3), [1, 2, 1]);
        assert_eq!(chosen(Balance::Weighted, &all, 4), [1, 2, 1, 2]);
    }

    #[test]
    fn every_word_has_a_meaning() {
        let all: Vec<Option<Balance>> = Balance::WORDS.iter().map(|word| Balance::of(word)).collect();
        assert_eq!(all[0], Some(Balance::default()));
        assert!(all.iter().all(Option::is_some));
        assert_eq!(Balance::of("fastest"), None);
    }

    proptest! {
        #[test]
        fn what_fails_is_chosen_only_where_nothing_else_is_left(
            all in proptest::collection::vec((any::<bool>(), any::<bool>(), 0..5_usize, 1..10_u32), 1..8),
            chance in any::<u64>(), times in 1..20_usize, which in 0..5_usize
        ) {
            let all: Vec<Candidate> =
                all.into_iter().map(|(well, tried, busy, weight)| Candidate { well, tried, busy, weight }).collect();
            let balance = Balance::of(Balance::WORDS[which]).unwrap();
            let mut turns = Turns::default();
            for _ in 0..times {
                match turns.choose(balance, &all, chance) {
                    None => prop_assert!(all.iter().all(|one| one.tried)),
                    Some(at) => {
                        prop_assert!(!all[at].tried);
                        prop_assert!(all[at].well || !all.iter().any(|one| one.well && !one.tried));
                    }
                }
            }
        }

        /// Proves SO-15.
        #[test]
        fn weights_are_kept_over_a_whole_round(weights in proptest::collection::vec(1..10_u32, 1..6)) {
            let all = candidates(&weights);
            let whole: u32 = weights.iter().sum();
            let got = chosen(Balance::Weighted, &all, whole as usize);
            for (at, weight) in weights.iter().enumerate() {
                prop_assert_eq!(got.iter().filter(|one| **one == at).count(), *weight as usize);
            }
        }
    }
}
