//! Suggestion of the known name that a mistyped one resembles.

/// Returns the known name that a mistyped one most resembles, if any is close.
#[must_use]
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let alike = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let lower = alike(name);
    known
        .iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(&lower, &alike(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of letters to insert, delete, replace or swap with their neighbour to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("comand", "command"), 1);
        assert_eq!(distance("agrs", "args"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_close_names_are_suggested() {
        let known = ["command", "args", "url"];
        assert_eq!(closest("comand", &known), Some("command"));
        assert_eq!(closest("URL", &known), Some("url"));
        assert_eq!(closest("colour", &known), None);
    }
}
