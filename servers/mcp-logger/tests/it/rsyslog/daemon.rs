//! An rsyslogd for one test: with its own ports and files, removed when the test ends.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use bowline_serve::testing::free_port;
use tokio::time::{Instant, sleep};

use crate::receiver::{Certificates, PATIENCE, folder};

/// The fields of a record, in order, separated by tabs, which no field can contain.
const FIELDS: [(&str, &str); 9] = [
    ("pri", "pri"),
    ("version", "protocol-version"),
    ("time", "timereported\" dateformat=\"rfc3339"),
    ("host", "hostname"),
    ("tag", "app-name"),
    ("procid", "procid"),
    ("msgid", "msgid"),
    ("data", "structured-data"),
    ("text", "msg"),
];

/// The longest message it accepts.
pub(super) const MAX_MESSAGE: usize = 4_096;

pub(super) struct Daemon {
    child: Child,
    folder: PathBuf,
    certificates: Certificates,
    pub(super) udp: u16,
    pub(super) tcp: u16,
    pub(super) tls: u16,
}

/// One line of its output.
pub(super) struct Record(Vec<Vec<u8>>);

impl Record {
    pub(super) fn field(&self, name: &str) -> &[u8] {
        &self.0[FIELDS.iter().position(|(field, _)| *field == name).unwrap()]
    }
}

impl Daemon {
    /// Starts it, and waits until it writes. Another process may take a port first; then it tries
    /// again.
    pub(super) async fn start(unpacked: &Path, name: &str) -> Self {
        for attempt in 1..3 {
            let mut daemon = Self::spawn(unpacked, &format!("{name}-{attempt}"));
            if daemon.is_listening().await {
                return daemon;
            }
        }
        let mut daemon = Self::spawn(unpacked, name);
        assert!(daemon.is_listening().await, "rsyslogd does not start: {}", daemon.stderr());
        daemon
    }

    fn spawn(unpacked: &Path, name: &str) -> Self {
        let folder = folder(name);
        let certificates = Certificates::new(&format!("{name}-tls"));
        let [udp, tcp, tls] = [(); 3].map(|()| free_port());
        let config = config(&folder, &certificates, [udp, tcp, tls]);
        fs::write(folder.join("rsyslog.conf"), config).unwrap();
        let child = launch(unpacked, &folder);
        Self { child, folder, certificates, udp, tcp, tls }
    }

    /// Ends it, as a crash would.
    pub(super) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, with the same ports and files.
    pub(super) async fn restart(&mut self, unpacked: &Path) {
        self.child = launch(unpacked, &self.folder);
        assert!(self.is_listening().await, "rsyslogd does not start again: {}", self.stderr());
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(super) fn ca_file(&self) -> String {
        self.certificates.file("ca.pem")
    }

    /// Waits for this many records with a tag, and returns them.
    pub(super) async fn records(&self, tag: &str, count: usize) -> Vec<Record> {
        let start = Instant::now();
        loop {
            let found: Vec<Record> =
                self.all().into_iter().filter(|it| it.field("tag") == tag.as_bytes()).collect();
            if found.len() >= count {
                assert_eq!(found.len(), count, "{tag}: too many records");
                return found;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{tag}: {} of {count} came: {}",
                found.len(),
                self.stderr()
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Tries all ports until they are open, or it has ended, perhaps because one was taken.
    async fn is_listening(&mut self) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let start = Instant::now();
        let is_open = |port: u16| {
            std::net::TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), PATIENCE).is_ok()
        };
        loop {
            let _ =
                socket.send_to(b"<14>Nov  5 09:30:00 web1 knock: knock", ("127.0.0.1", self.udp));
            if !self.all().is_empty() && is_open(self.tcp) && is_open(self.tls) {
                return true;
            }
            if start.elapsed() > PATIENCE || self.child.try_wait().unwrap().is_some() {
                return false;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn all(&self) -> Vec<Record> {
        let written = fs::read(self.folder.join("records")).unwrap_or_default();
        let lines = written.split_inclusive(|byte| *byte == b'\n');
        let whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
        whole
            .map(|line| Record(line.split(|it| *it == b'\t').map(<[u8]>::to_vec).collect()))
            .collect()
    }

    /// Whether no record has this tag.
    pub(super) fn is_free_of(&self, tag: &[u8]) -> bool {
        let known: [&[u8]; 3] = [b"knock", b"octet-counting", b"lf"];
        self.all().iter().all(|it| it.field("tag") != tag && known.contains(&it.field("tag")))
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn launch(unpacked: &Path, folder: &Path) -> Child {
    let libraries = libraries(unpacked);
    // A daemon that was killed leaves this behind, and would not start again.
    let _ = fs::remove_file(folder.join("pid"));
    Command::new(unpacked.join("usr/sbin/rsyslogd"))
        .arg("-n")
        .arg("-f")
        .arg(folder.join("rsyslog.conf"))
        .arg("-M")
        .arg(libraries.join("rsyslog"))
        .arg("-i")
        .arg(folder.join("pid"))
        .env("LD_LIBRARY_PATH", &libraries)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap()
}

fn libraries(unpacked: &Path) -> PathBuf {
    unpacked.join("usr/lib").join(format!("{}-linux-gnu", env::consts::ARCH))
}

fn config(folder: &Path, certificates: &Certificates, [udp, tcp, tls]: [u16; 3]) -> String {
    let properties: Vec<String> =
        FIELDS.iter().map(|(_, property)| format!("property(name=\"{property}\")")).collect();
    let template = properties.join(" constant(value=\"\\t\") ");
    let [folder, records, socket] = [folder, &folder.join("records"), &folder.join("log")]
        .map(|path| path.display().to_string());
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| certificates.file(name));
    format!(
        r#"
global(workDirectory="{folder}" localHostname="web1" maxMessageSize="{MAX_MESSAGE}" defaultNetstreamDriverCAFile="{ca}"
       defaultNetstreamDriverCertFile="{cert}" defaultNetstreamDriverKeyFile="{key}")
module(load="imudp")
module(load="imptcp")
module(load="imuxsock" sysSock.use="off")
module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="fields" type="list") {{ {template} constant(value="\n") }}
ruleset(name="write") {{ action(type="omfile" file="{records}" template="fields" asyncWriting="off") }}
input(type="imudp" address="127.0.0.1" port="{udp}" ruleset="write")
input(type="imptcp" address="127.0.0.1" port="{tcp}" ruleset="write")
input(type="imuxsock" socket="{socket}" useSysTimeStamp="off" ignoreTimestamp="off" ruleset="write")
input(type="imtcp" address="127.0.0.1" port="{tls}" ruleset="write")
"#
    )
}
