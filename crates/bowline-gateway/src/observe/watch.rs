//! One channel while bytes pass.

use super::queue::Event;
use super::{Channel, Observer};

/// Shows the bytes of a channel to an observer, and its end.
#[must_use = "the channel ends when this is dropped"]
pub struct Watch {
    observer: Observer,
    channel: Channel,
    /// Whether the observer knows of the channel. If it does not, whatever passes counts as lost:
    /// it would begin in the middle of a frame.
    is_known: bool,
}

impl Watch {
    pub(super) fn new(observer: &Observer, channel: Channel) -> Self {
        let is_known = observer.queue.push(0, || Event::Opened { channel }, None);
        Self { observer: observer.clone(), channel, is_known }
    }

    /// Takes bytes.
    pub fn bytes(&self, bytes: &[u8]) {
        if !self.is_known {
            return self.observer.queue.lose();
        }
        let (at, channel) = (self.observer.queue.at(), self.channel);
        let event = || Event::Bytes { at, channel, bytes: bytes.to_vec() };
        self.observer.queue.push(bytes.len(), event, Some(channel));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.is_known {
            let (at, channel) = (self.observer.queue.at(), self.channel);
            self.observer.queue.push_always(Event::Closed { at, channel });
        }
    }
}
