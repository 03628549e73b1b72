//! A proxy between a node and a store, which can cut it off without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// One proxy. Bytes that arrive while it is cut wait, as on a network that drops them.
#[derive(Clone)]
pub struct Proxy {
    pub port: u16,
    is_cut: Arc<AtomicBool>,
    target: Arc<AtomicU16>,
}

impl Proxy {
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self { port, is_cut: Arc::default(), target: Arc::new(target.into()) };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().pass(stream));
            }
        });
        proxy
    }

    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
    }

    async fn wait(&self) {
        while self.is_cut.load(Ordering::Acquire) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn pass(self, near: TcpStream) {
        self.wait().await;
        let target = self.target.load(Ordering::Acquire);
        let Ok(far) = TcpStream::connect(("127.0.0.1", target)).await else { return };
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        let up = self.clone().copy(near_in, far_out);
        tokio::join!(up, self.copy(far_in, near_out));
    }

    async fn copy(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut some = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut some).await {
            self.wait().await;
            if to.write_all(&some[..length]).await.is_err() {
                return;
            }
        }
    }
}
