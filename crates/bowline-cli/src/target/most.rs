//! How much a server may send.

use bowline::client::ClientLimits;
use clap::Args;

use super::size;

/// How much to accept from a server.
#[derive(Debug, Clone, Args)]
pub(crate) struct MostArgs {
    /// The largest message to accept from the server: 500k, 64M, 1G [default: 16M]; also the
    /// largest list, from all its pages [default: 32M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<usize>,

    /// The longest list to accept, in items [default: 100000] and in pages [default: 1000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_items: Option<u64>,
}

impl MostArgs {
    /// The limits of a client that passes on what comes.
    pub(crate) fn limits(&self) -> ClientLimits {
        let mut limits = ClientLimits::default();
        if let Some(size) = self.max_size {
            limits.message_length = size;
            // A list may have many messages, of which one is allowed to be this large.
            limits.list_bytes = limits.list_bytes.max(size);
        }
        if let Some(items) = self.max_items {
            limits.list_items = items;
            limits.list_pages = limits.list_pages.max(items);
        }
        limits
    }

    /// The same for lists that are printed.
    pub(crate) fn limits_for_people(&self) -> ClientLimits {
        /// No person reads a list of more pages.
        const PAGES: u64 = 1000;
        ClientLimits { list_pages: self.max_items.unwrap_or(PAGES).max(PAGES), ..self.limits() }
    }
}
