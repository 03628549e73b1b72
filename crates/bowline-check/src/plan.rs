//! Which checks run one after the other, and which at the same time.
//!
//! A program may take seconds to start, so checks share one wherever that proves as much, and the
//! rest run side by side. A server at a URL costs nothing to connect to, and gets one request at a
//! time: what one check breaks there, another would be blamed for.

use bowline::Revision;
use futures_util::stream::{self, StreamExt};

use crate::rule::{self, Isolation, Rule, Transport};
use crate::run::Choice;

/// Rules of one revision that are checked one after the other, on connections of their own.
pub(crate) struct Unit {
    pub(crate) revision: Revision,
    pub(crate) rules: Vec<&'static Rule>,
    /// Whether it has the connection that most checks of the revision share. Each revision has
    /// exactly one such unit.
    pub(crate) is_main: bool,
}

impl Unit {
    /// Whether its findings are true of a revision.
    pub(crate) fn is_of(&self, revision: Revision) -> bool {
        let reaches = |rule: &&Rule| {
            rule.isolation == Isolation::Once && rule.applies(revision, Transport::Stdio)
        };
        self.revision == revision || self.rules.iter().any(reaches)
    }
}

/// Units that run one after the other. Several lanes run at the same time.
pub(crate) type Lane = Vec<Unit>;

/// Sorts the rules whose checks send something. The longest lanes come first.
pub(crate) fn lanes(choice: &Choice, revisions: &[Revision], transport: Transport) -> Vec<Lane> {
    let is_split = transport == Transport::Stdio;
    let mut mains = Vec::new();
    let mut beside: Vec<(&str, Unit)> = Vec::new();
    for &revision in revisions {
        let mut main = Unit { revision, rules: Vec::new(), is_main: true };
        for rule in rule::acting().filter(|it| choice.takes(it, revision, transport)) {
            let (word, is_once) = match rule.isolation {
                Isolation::Apart(word) if is_split => (word, false),
                Isolation::Once if is_split => (rule.id, true),
                _ => {
                    main.rules.push(rule);
                    continue;
                }
            };
            let mut known = beside.iter_mut().filter(|(name, _)| *name == word);
            match known.find(|(_, unit)| is_once || unit.revision == revision) {
                Some(_) if is_once => {}
                Some((_, unit)) => unit.rules.push(rule),
                None => beside.push((word, Unit { revision, rules: vec![rule], is_main: false })),
            }
        }
        mains.push(main);
    }
    if !is_split {
        return vec![mains];
    }
    let beside = beside.into_iter().map(|(_, unit)| unit);
    mains.into_iter().chain(beside).map(|unit| vec![unit]).collect()
}

/// Runs futures, at most so many at once; returns their outputs in order.
///
/// # Cancel safety
/// Dropping this drops all of them.
pub(crate) async fn at_once<F: Future>(most: usize, futures: Vec<F>) -> Vec<F::Output> {
    let futures = futures.into_iter().enumerate().map(|(at, it)| async move { (at, it.await) });
    let mut done: Vec<_> = stream::iter(futures).buffer_unordered(most.max(1)).collect().await;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    fn shape(transport: Transport, revisions: &[Revision], only: &[&str]) -> Vec<Vec<String>> {
        let only = only.iter().map(|it| (*it).to_owned()).collect();
        let choice = Choice { only, ..Choice::default() };
        let told = |unit: Unit| {
            let ids = unit.rules.iter().map(|it| it.id).collect::<Vec<_>>().join(" ");
            format!("{} {ids}", unit.revision)
        };
        let lanes = lanes(&choice, revisions, transport);
        lanes.into_iter().map(|lane| lane.into_iter().map(told).collect()).collect()
    }

    #[test]
    fn programs_run_side_by_side_and_urls_do_not() {
        let revisions = [Revision::V2025_06_18, Revision::V2025_11_25];
        let only = ["lifecycle.initialize", "lifecycle.early-ping", "lifecycle.ping", "stdio.end"];
        assert_eq!(
            shape(Transport::Stdio, &revisions, &only),
            [
                ["2025-06-18 lifecycle.ping"],
                ["2025-11-25 lifecycle.ping"],
                ["2025-06-18 lifecycle.initialize stdio.end"],
                ["2025-06-18 lifecycle.early-ping"],
                ["2025-11-25 lifecycle.initialize stdio.end"],
            ]
        );
        assert_eq!(
            shape(Transport::Sse, &revisions, &only),
            [[
                "2025-06-18 lifecycle.initialize lifecycle.early-ping lifecycle.ping",
                "2025-11-25 lifecycle.initialize lifecycle.early-ping lifecycle.ping",
            ]]
        );
    }

    /// How many run, and how many did at most.
    #[derive(Default)]
    struct Count {
        now: Cell<usize>,
        most: Cell<usize>,
    }

    /// The later ones are done first.
    async fn work(at: usize, count: &Count) -> usize {
        count.now.set(count.now.get() + 1);
        count.most.set(count.most.get().max(count.now.get()));
        for _ in at..10 {
            yield_now().await;
        }
        count.now.set(count.now.get() - 1);
        at
    }

    #[tokio::test]
    async fn only_so_much_is_done_at_once_and_the_order_stays() {
        for most in [1, 3, 20] {
            let count = Count::default();
            let done = at_once(most, (0..10).map(|at| work(at, &count)).collect()).await;
            assert_eq!(done, (0..10).collect::<Vec<_>>());
            assert_eq!(count.most.get(), most.min(10));
        }
    }
}
