//! Encrypted connections to both stores.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use bowline::fleet::{Change, Fleet as _};
use bowline_fleet::Fleet;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::nodes::eventually;
use crate::stores::{Folder, Postgres, Redis};

/// An authority, and a certificate of 127.0.0.1, as files in a folder.
pub fn certificates(folder: &Folder) -> [String; 3] {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&key).unwrap();
    let issuer = Issuer::new(authority, key);
    let own = KeyPair::generate().unwrap();
    let host = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let host = host.signed_by(&own, &issuer).unwrap();
    let files =
        [("ca.pem", root.pem()), ("host.pem", host.pem()), ("host.key", own.serialize_pem())];
    files.map(|(name, text)| folder.write(name, &text).display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_reached_as_its_address_says() {
    let folder = Folder::new("tls");
    let [root, host, key] = certificates(&folder);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let settings = [("ssl", "on".to_owned()), ("ssl_cert_file", host), ("ssl_key_file", key)];
    let postgres = Postgres::start_with(&settings);
    let database = postgres.database();
    let encrypted = || {
        let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE ssl AND application_name = 'bowline'";
        postgres.sql("test0", sql).unwrap().parse::<u32>().unwrap() > 0
    };
    let join = async |settings: String| Fleet::connect(&format!("{database}?{settings}")).await;
    drop(join("sslmode=disable".to_owned()).await.unwrap());
    assert!(!encrypted());
    for settings in [
        "sslmode=require".to_owned(),
        format!("sslmode=verify-full&sslrootcert={root}"),
        format!("sslmode=require&sslrootcert={root}"),
        "sslmode=prefer".to_owned(),
    ] {
        let fleet = join(settings.clone()).await;
        let fleet =
            fleet.unwrap_or_else(|error| panic!("{settings}: {}", bowline::with_causes(&error)));
        assert!(encrypted(), "{settings}");
        drop(fleet);
    }
    let refused = join("sslmode=verify-full".to_owned()).await.err();
    let refused = bowline::with_causes(&refused.expect("an authority that nobody knows"));
    assert!(refused.contains("certificate"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_must_have_a_certificate_that_is_trusted() {
    let folder = Folder::new("tls");
    let [root, host, key] = certificates(&folder);
    let (postgres, redis) = (Postgres::start(), Redis::start_with(&[host, key, root.clone()]));
    let pem = fs::read(&root).unwrap();
    let reaches = async |url: String, root: Option<&[u8]>| {
        let mut fleet = Fleet::builder(postgres.database()).redis(url);
        if let Some(root) = root {
            fleet = fleet.redis_root(root);
        }
        let fleet = fleet.connect().await.unwrap();
        // The first attempts may be too slow, on a busy machine.
        for _ in 0..10 {
            let before = fleet.metrics();
            fleet.announce(Change::of_task("task"));
            let announced = || fleet.metrics().announced > before.announced;
            eventually("it is announced", async || announced().then_some(())).await;
            if fleet.metrics().redis_failures == before.redis_failures {
                return true;
            }
        }
        false
    };
    let url = redis.url().replace("redis://", "rediss://");
    assert!(reaches(url.clone(), Some(&pem)).await);
    assert!(!reaches(url, None).await, "its authority is not one of the system's");
    assert!(!reaches(redis.url(), None).await, "and it is encrypted");
}
