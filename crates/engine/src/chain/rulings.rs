//! The decisions of one interceptor, or of one part of the gateway, about a message.

use super::judgement::Ruling;
use std::ops::Deref;
use std::sync::Arc;

/// Rulings in their order. Most messages of one kind are decided alike and share one ruling.
#[derive(Clone, Default, Debug)]
pub enum Rulings {
    /// Nothing to record.
    #[default]
    None,
    /// A single one.
    One(Arc<Ruling>),
    /// Several.
    Many(Arc<[Arc<Ruling>]>),
}

impl Deref for Rulings {
    type Target = [Arc<Ruling>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(ruling) => std::slice::from_ref(ruling),
            Self::Many(rulings) => rulings,
        }
    }
}

impl From<Ruling> for Rulings {
    fn from(ruling: Ruling) -> Self {
        Self::One(Arc::new(ruling))
    }
}

impl From<Vec<Arc<Ruling>>> for Rulings {
    fn from(mut rulings: Vec<Arc<Ruling>>) -> Self {
        match rulings.len() {
            0 => Self::None,
            1 => rulings.pop().map_or(Self::None, Self::One),
            _ => Self::Many(rulings.into()),
        }
    }
}
