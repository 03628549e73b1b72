//! A listener: changes coalesce, none is lost, none is reported out of order.

use std::collections::BTreeSet;

use bowline_fuzz::Bytes;
use bowline_proto::session::{Promised, Subscription, SubscriptionLimits, Topic};

struct Model {
    subscription: Subscription,
    promised: Promised,
    limits: SubscriptionLimits,
    topics: BTreeSet<Topic>,
    /// Changed and not reported yet, in order.
    waiting: Vec<Topic>,
    is_open: bool,
    is_closed: bool,
}

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let Some(mut model) = listen(bytes) else {
        return;
    };
    while !bytes.is_empty() {
        match bytes.below(9) {
            0..=2 => model.change(bytes),
            3 => model.subscribe(bytes),
            4 => model.unsubscribe(bytes),
            5 => model.release(),
            6 | 7 => model.poll(),
            _ if bytes.byte() > 240 => model.close(),
            _ => {}
        }
        if !model.is_closed {
            assert!(model.subscription.granted().eq(&model.topics));
        }
    }
    model.release();
    for _ in 0..=model.waiting.len() {
        model.poll();
    }
    assert!(model.is_closed || model.waiting.is_empty(), "a change is lost");
}

fn listen(bytes: &mut Bytes<'_>) -> Option<Model> {
    let bits = bytes.byte();
    let bit = |at: u8| bits >> at & 1 == 0;
    let promised = Promised {
        tools: bit(0),
        prompts: bit(1),
        resources: bit(2),
        resource: bit(3),
        extension: bit(4),
    };
    let limits = SubscriptionLimits { names: bytes.below(5), name_length: bytes.below(6) };
    let is_session = bit(5);
    let wanted: Vec<Topic> = if is_session {
        vec![Topic::Tools, Topic::Prompts, Topic::Resources]
    } else {
        (0..bytes.below(8)).map(|_| topic(bytes)).collect()
    };
    let topics: BTreeSet<Topic> =
        wanted.iter().filter(|topic| promised.includes(topic)).cloned().collect();
    let is_long = topics.iter().filter_map(name).any(|name| name.len() > limits.name_length);
    let is_much = is_long || topics.iter().any(|topic| alike(&topics, topic) > limits.names);
    let subscription = if is_session {
        Ok(Subscription::session(promised, limits))
    } else {
        Subscription::listen(promised, limits, wanted)
    };
    assert_eq!(subscription.is_err(), is_much);
    let waiting = Vec::new();
    let subscription = subscription.ok()?;
    Some(Model {
        subscription,
        promised,
        limits,
        topics,
        waiting,
        is_open: false,
        is_closed: false,
    })
}

impl Model {
    fn change(&mut self, bytes: &mut Bytes<'_>) {
        let topic = topic(bytes);
        let is_wanted = !self.is_closed && self.topics.contains(&topic);
        let is_new = is_wanted && !self.waiting.contains(&topic);
        let is_told = self.subscription.handle_change(&topic);
        assert_eq!(is_told, is_new && self.is_open);
        self.waiting.extend(is_new.then_some(topic));
    }

    fn subscribe(&mut self, bytes: &mut Bytes<'_>) {
        let uri = uri(bytes);
        let topic = Topic::Resource(uri.into());
        let names = alike(&self.topics, &topic);
        let fits = uri.len() <= self.limits.name_length && names < self.limits.names;
        let is_granted = self.promised.resource && (fits || self.topics.contains(&topic));
        let outcome = self.subscription.subscribe(uri);
        // After the end nothing is reported, granted or not.
        if !self.is_closed {
            assert_eq!(outcome.is_ok(), is_granted);
            self.topics.extend(is_granted.then_some(topic));
        }
    }

    fn unsubscribe(&mut self, bytes: &mut Bytes<'_>) {
        let uri = uri(bytes);
        self.subscription.unsubscribe(uri);
        let topic = Topic::Resource(uri.into());
        self.topics.remove(&topic);
        self.waiting.retain(|waiting| *waiting != topic);
    }

    fn release(&mut self) {
        self.is_open = !self.is_closed;
        assert_eq!(self.subscription.release(), self.is_open && !self.waiting.is_empty());
    }

    fn poll(&mut self) {
        let is_due = self.is_open && !self.waiting.is_empty();
        let expected = is_due.then(|| self.waiting.remove(0));
        assert_eq!(self.subscription.poll_change(), expected);
    }

    fn close(&mut self) {
        self.subscription.close();
        self.is_open = false;
        self.is_closed = true;
        self.waiting.clear();
    }
}

fn uri(bytes: &mut Bytes<'_>) -> &'static str {
    bytes.pick(&["", "a:b", "a:c", "a:d", "a:bc", "a:bcd"])
}

fn topic(bytes: &mut Bytes<'_>) -> Topic {
    match bytes.below(5) {
        0 => Topic::Tools,
        1 => Topic::Prompts,
        2 => Topic::Resources,
        3 => Topic::Resource(uri(bytes).into()),
        _ => Topic::Extension("names".into(), uri(bytes).into()),
    }
}

/// How many names there are of the same kind: each kind has the limit to itself.
fn alike(topics: &BTreeSet<Topic>, topic: &Topic) -> usize {
    let kind = std::mem::discriminant(topic);
    let is_alike = |other: &&Topic| std::mem::discriminant(*other) == kind && name(other).is_some();
    topics.iter().filter(is_alike).count()
}

fn name(topic: &Topic) -> Option<&str> {
    match topic {
        Topic::Resource(name) | Topic::Extension(_, name) => Some(name),
        Topic::Tools | Topic::Prompts | Topic::Resources => None,
    }
}
