//! A client and a server, the link between them, and the clock.

use std::time::{Duration, Instant};

use super::base;
use super::client::{Client, Effect};
use super::link::{Link, Packet, To, Weather};
use super::random::Random;
use super::server::{Habit, Server};
use crate::revision::{Offer, Revision, Revisions};
use crate::session::Transport;

/// One conversation to be had.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) transport: Transport,
    pub(super) ours: Revisions,
    pub(super) offer: Offer,
    pub(super) habit: Habit,
    pub(super) known: Option<Revision>,
    pub(super) weather: Weather,
    pub(super) seed: u64,
}

pub(super) struct Pair {
    case: Case,
    pub(super) client: Client,
    pub(super) server: Server,
    link: Link,
    random: Random,
    now: Instant,
    exit: Option<Instant>,
}

/// Everything must have ended by then.
const LONGEST: Duration = Duration::from_secs(60);

impl Pair {
    /// Lets both talk until neither has anything left to say or to wait for.
    pub(super) fn run(case: Case) -> Self {
        let mut pair = Self {
            case,
            client: Client::new(case.transport, case.ours),
            server: Server::new(case.transport, case.offer, case.habit),
            link: Link::new(case.weather),
            random: Random::new(case.seed),
            now: base(),
            exit: None,
        };
        let effects = pair.client.open(pair.now, case.known);
        pair.apply(effects);
        while let Some(next) = pair.next_event() {
            assert!(next <= base() + LONGEST, "somebody waits for ever: {case:?}");
            pair.now = pair.now.max(next);
            pair.step();
        }
        pair
    }

    fn next_event(&self) -> Option<Instant> {
        let events = [
            self.link.next_arrival(),
            self.client.next_deadline(),
            self.server.next_deadline(),
            self.exit,
        ];
        events.into_iter().flatten().min()
    }

    fn step(&mut self) {
        while let Some((to, packet)) = self.link.receive(self.now) {
            match to {
                To::Client => {
                    let effects = self.client.handle(self.now, &packet);
                    self.apply(effects);
                }
                To::Server if self.server.is_alive => {
                    let packets = self.server.handle(self.now, &mut self.random, &packet);
                    self.send_to_client(packets);
                    if !self.server.is_alive {
                        self.exit = Some(self.now + Duration::from_millis(5));
                    }
                }
                To::Server => {}
            }
        }
        if self.exit.is_some_and(|exit| exit <= self.now) {
            self.exit = None;
            let effects = self.client.handle_exit(self.now);
            self.apply(effects);
        }
        let packets = self.server.poll(self.now);
        self.send_to_client(packets);
        let effects = self.client.poll(self.now);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(packet) => {
                    self.link.send(self.now, &mut self.random, To::Server, packet);
                }
                Effect::Respawn => {
                    self.link.cut();
                    let Case { transport, offer, habit, .. } = self.case;
                    self.server = Server::new(transport, offer, habit);
                }
            }
        }
    }

    fn send_to_client(&mut self, packets: Vec<Packet>) {
        for packet in packets {
            self.link.send(self.now, &mut self.random, To::Client, packet);
        }
    }
}
