//! What runs for the page and can be cancelled, by the page's name for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bowline_inspector::Problem;
use tokio::task::{JoinHandle, spawn_local};

/// The most that run at a time.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Running {
    all: RefCell<HashMap<String, Work>>,
}

struct Work {
    connection: u64,
    handle: JoinHandle<()>,
}

impl Running {
    /// Starts something for a connection.
    pub(super) fn start(
        self: &Rc<Self>,
        connection: u64,
        name: String,
        work: impl Future<Output = ()> + 'static,
    ) -> Result<(), Problem> {
        let mut all = self.all.borrow_mut();
        if all.contains_key(&name) {
            return Err(Problem::new(format!("{name} is running already")));
        }
        if all.len() >= MOST {
            return Err(Problem::new(format!("{MOST} calls are the most; cancel some first")));
        }
        let (running, ended) = (Rc::clone(self), name.clone());
        let handle = spawn_local(async move {
            work.await;
            running.all.borrow_mut().remove(&ended);
        });
        all.insert(name, Work { connection, handle });
        Ok(())
    }

    /// Ends it, and waits until it has ended: nothing is reported about it afterwards.
    pub(super) async fn cancel(&self, name: &str) {
        let work = self.all.borrow_mut().remove(name);
        if let Some(work) = work {
            end(work).await;
        }
    }

    /// The same for everything that runs for a connection.
    pub(super) async fn cancel_of(&self, connection: u64) {
        let of = self.all.borrow_mut().extract_if(|_, it| it.connection == connection).collect();
        let of: Vec<(String, Work)> = of;
        for (_, work) in of {
            end(work).await;
        }
    }
}

async fn end(work: Work) {
    work.handle.abort();
    // An error means that it was aborted.
    let _ = work.handle.await;
}
