//! How many bytes a record holds, without writing it.

use bowline_proto::model::Implementation;
use serde::Serialize;

/// The bytes of what a client says about itself.
pub(super) fn info_size(info: &Implementation) -> usize {
    let Implementation { name, title, version, description, website_url, icons } = info;
    let texts = [title, description, website_url].into_iter().flatten().map(String::len);
    name.len() + version.len() + texts.sum::<usize>() + icons.as_ref().map_or(0, written)
}

/// The bytes of a value as JSON.
pub(super) fn written(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written is not kept.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
