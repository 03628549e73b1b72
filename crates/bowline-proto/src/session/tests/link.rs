//! What lies between two peers: it delays, reorders and loses.

use std::time::{Duration, Instant};

use super::random::Random;
use crate::revision::Revision;
use crate::wire::Id;

/// One message on its way, with what HTTP says beside it.
#[derive(Debug, Clone, Default)]
pub(super) struct Packet {
    pub(super) frame: Vec<u8>,
    pub(super) status: Option<u16>,
    pub(super) header: Option<Revision>,
    pub(super) has_session_id: bool,
    /// The call on whose exchange an HTTP answer travels.
    pub(super) exchange: Option<Id>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Client,
    Server,
}

/// How bad it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) longest_delay: u64,
    pub(super) loss_percent: u64,
}

impl Weather {
    pub(super) const CALM: Self = Self { longest_delay: 1, loss_percent: 0 };
    pub(super) const WINDY: Self = Self { longest_delay: 400, loss_percent: 0 };
    pub(super) const STORMY: Self = Self { longest_delay: 1500, loss_percent: 25 };
}

pub(super) struct Link {
    weather: Weather,
    sent: u64,
    on_the_way: Vec<(Instant, u64, To, Packet)>,
}

impl Link {
    pub(super) fn new(weather: Weather) -> Self {
        Self { weather, sent: 0, on_the_way: Vec::new() }
    }

    pub(super) fn send(&mut self, now: Instant, random: &mut Random, to: To, packet: Packet) {
        if random.percent(self.weather.loss_percent) {
            return;
        }
        let delay = 1 + random.below(self.weather.longest_delay);
        self.sent += 1;
        let arrival = now + Duration::from_millis(delay);
        self.on_the_way.push((arrival, self.sent, to, packet));
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.on_the_way.iter().map(|(arrival, ..)| *arrival).min()
    }

    pub(super) fn receive(&mut self, now: Instant) -> Option<(To, Packet)> {
        let due = |index: &usize| self.on_the_way[*index].0 <= now;
        let order = |index: &usize| (self.on_the_way[*index].0, self.on_the_way[*index].1);
        let index = (0..self.on_the_way.len()).filter(due).min_by_key(order)?;
        let (_, _, to, packet) = self.on_the_way.remove(index);
        Some((to, packet))
    }

    /// The process at the other end is another one now.
    pub(super) fn cut(&mut self) {
        self.on_the_way.clear();
    }
}
