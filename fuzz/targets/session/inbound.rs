//! Requests of a peer: each is answered or cancelled exactly once, or drained with all others.

use bowline_fuzz::Bytes;
use bowline_proto::session::{BeginError, Inbound, SameId, Ticket};
use bowline_proto::wire::Id;

/// A request in the model.
struct Live {
    id: Id,
    may_be_cancelled: bool,
    handle: usize,
}

struct Model {
    inbound: Inbound<usize>,
    same_id: SameId,
    limit: usize,
    live: Vec<Live>,
    /// Not redeemed yet, with the handle of the request.
    tickets: Vec<(usize, Ticket)>,
    begun: usize,
}

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let same_id = bytes.pick(&[SameId::Refuse, SameId::Serve]);
    let limit = bytes.below(9);
    let mut model = Model {
        inbound: Inbound::new(same_id, limit),
        same_id,
        limit,
        live: Vec::new(),
        tickets: Vec::new(),
        begun: 0,
    };
    while !bytes.is_empty() {
        match bytes.below(6) {
            0..=2 => model.begin(bytes),
            3 => model.cancel(bytes),
            4 => model.finish(bytes),
            _ if bytes.byte() > 250 => model.drain(),
            _ => {}
        }
        model.check();
    }
    while !model.tickets.is_empty() {
        model.finish(bytes);
    }
    model.check();
    assert!(model.live.is_empty(), "a request never ended");
}

impl Model {
    fn begin(&mut self, bytes: &mut Bytes<'_>) {
        let id = id(bytes);
        let method = bytes.pick(&["tools/call", "initialize"]);
        let is_taken = self.live.iter().any(|live| live.id == id);
        let handle = self.begun;
        match self.inbound.begin(id.clone(), method, handle) {
            Ok(ticket) => {
                assert!(self.live.len() < self.limit, "more than the limit");
                assert!(!is_taken || self.same_id == SameId::Serve, "two answers to one id");
                assert_eq!(*ticket.id(), id);
                self.begun += 1;
                self.tickets.push((handle, ticket));
                let may_be_cancelled = method != "initialize";
                self.live.push(Live { id, may_be_cancelled, handle });
            }
            Err(BeginError::Refused(error)) => {
                assert!(is_taken && self.same_id == SameId::Refuse, "{error}");
            }
            Err(BeginError::Full) => assert_eq!(self.live.len(), self.limit),
        }
    }

    fn cancel(&mut self, bytes: &mut Bytes<'_>) {
        let id = id(bytes);
        let same: Vec<&Live> = self.live.iter().filter(|live| live.id == id).collect();
        let handle = self.inbound.cancel(&id);
        match (handle, &same[..]) {
            (Some(handle), [only]) => {
                assert!(only.may_be_cancelled && only.handle == handle);
                self.live.retain(|live| live.handle != handle);
            }
            (Some(_), _) => panic!("the wrong one might be cancelled"),
            (None, [only]) if self.same_id == SameId::Refuse => assert!(!only.may_be_cancelled),
            (None, _) => {}
        }
    }

    fn finish(&mut self, bytes: &mut Bytes<'_>) {
        if self.tickets.is_empty() {
            return;
        }
        let (handle, ticket) = self.tickets.swap_remove(bytes.below(self.tickets.len()));
        let is_live = self.live.iter().any(|live| live.handle == handle);
        assert_eq!(self.inbound.finish(ticket), is_live, "answered and cancelled, or neither");
        self.live.retain(|live| live.handle != handle);
    }

    fn drain(&mut self) {
        let mut drained: Vec<usize> = self.inbound.drain().collect();
        drained.sort_unstable();
        assert!(drained.into_iter().eq(self.live.drain(..).map(|live| live.handle)));
    }

    fn check(&self) {
        assert_eq!(self.inbound.len(), self.live.len());
        assert_eq!(self.inbound.is_empty(), self.live.is_empty());
        assert_eq!(self.inbound.is_full(), self.live.len() >= self.limit);
    }
}

/// One of few, so that they collide.
fn id(bytes: &mut Bytes<'_>) -> Id {
    match bytes.below(6) {
        0 => Id::from("1"),
        number => Id::from(number as u64),
    }
}
