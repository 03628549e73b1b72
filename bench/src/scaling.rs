//! How cost grows with the work: tools, payload, concurrent calls, sessions and streams.

use crate::document::Section;
use crate::frames::Revision;
use crate::measure::{Sample, exponent, median, steepest};
use crate::plot::{Curve, draw};
use crate::program::Line;
use crate::servers::{Load, measure};
use crate::streams::{Kept, gained};
use crate::table::{Table, bytes, number};
use crate::{Bench, block_on};

/// What grows, and what is measured.
struct Growth {
    /// The plot's file.
    file: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    about: String,
    curves: Vec<Curve>,
}

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let growths = [tools(bench)?, payload(bench)?, width(bench)?, kept(bench)?];
    let mut section = Section::new(
        "An exponent of 0 is constant, 1 linear, 2 quadratic: the slope of the line through the \
         points, and that of the steepest step between two of them. Short steps carry the noise of \
         the machine.\n\n"
            .to_owned(),
    );
    for growth in growths {
        section.text += &format!("### {}\n\n{}\n\n", growth.title, growth.about);
        section.text += &growth.table();
        section.text += &format!("![{}](performance/{})\n\n", growth.title, growth.file);
        let plot = draw(growth.title, (growth.x, growth.y), &growth.curves);
        section.plots.push((growth.file.to_owned(), plot));
    }
    Ok(section)
}

impl Growth {
    fn table(&self) -> String {
        let names = self.curves.iter().map(|curve| format!("{}, {}", curve.name, self.y));
        let mut heading = vec![self.x.to_owned()];
        heading.extend(names);
        let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
        let mut table = Table::new(&heading);
        let rows = self.curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
        for row in 0..rows {
            let x = self.curves.iter().find_map(|curve| curve.points.get(row)).map(|it| it.0);
            let mut cells =
                vec![number(x.unwrap_or(f64::NAN)).replace(".00", "").replace(".0", "")];
            let shown = |value: f64| match self.y {
                "bytes" => bytes(value),
                _ => number(value),
            };
            let values = self.curves.iter().map(|curve| curve.points.get(row));
            cells.extend(
                values.map(|point| point.map_or_else(|| "–".to_owned(), |point| shown(point.1))),
            );
            table.row(&cells);
        }
        for (name, slope) in
            [("exponent", exponent as fn(&[_]) -> f64), ("steepest step", steepest)]
        {
            let slopes = self.curves.iter().map(|curve| format!("{:.2}", slope(&curve.points)));
            let cells: Vec<String> = std::iter::once(name.to_owned()).chain(slopes).collect();
            table.row(&cells);
        }
        table.finish()
    }
}

/// The transports, each in the era that scales best.
const TRANSPORTS: [(&str, bool, Revision); 3] = [
    ("stdio 2025-11-25", false, Revision::Legacy),
    ("stdio 2026-07-28", false, Revision::Modern),
    ("http 2026-07-28", true, Revision::Modern),
];

/// The server's CPU microseconds per call; the median of some rounds.
fn cost(bench: &Bench, line: &Line, load: &Load, tool: &str) -> Result<f64, String> {
    let mut samples = Vec::new();
    for _ in 0..bench.rounds().min(3) {
        samples.push(block_on(measure(bench, line, load, tool))?);
    }
    Ok(median(samples.iter().map(Sample::cpu_per_call)))
}

/// One curve for each transport.
fn curves(
    xs: &[usize],
    cost: impl Fn(usize, bool, Revision) -> Result<f64, String>,
) -> Result<Vec<Curve>, String> {
    let mut curves = Vec::new();
    for (name, is_http, revision) in TRANSPORTS {
        let mut points = Vec::new();
        for &x in xs {
            let found = cost(x, is_http, revision);
            points.push((x as f64, found.map_err(|error| format!("{name}, {x}: {error}"))?));
        }
        curves.push(Curve { name: name.to_owned(), points });
    }
    Ok(curves)
}

fn tools(bench: &Bench) -> Result<Growth, String> {
    let counts = [1, 100, 1_000, 10_000];
    let curves = curves(&counts, |tools, is_http, revision| {
        let line = bench.peers.with_tools(is_http, tools);
        let load = Load { is_http, revision, width: 16, bytes: 64, has_identities: false };
        cost(bench, &line, &load, &format!("tool-{}", tools - 1))
    })?;
    Ok(Growth {
        file: "tools.svg",
        title: "Registered tools",
        x: "tools",
        y: "CPU µs/call",
        about: "Calls of the tool that was registered last, 64 bytes, 16 at a time.".to_owned(),
        curves,
    })
}

fn payload(bench: &Bench) -> Result<Growth, String> {
    // By default a frame may have 16 MiB and a body 4 MiB, including the envelope.
    let sizes = [64, 1 << 10, 16 << 10, 256 << 10, (4 << 20) - 1024, (16 << 20) - 1024];
    let mut curves = curves(&sizes, |bytes, is_http, revision| {
        if is_http && bytes > 4 << 20 {
            return Ok(f64::NAN);
        }
        let load = Load { is_http, revision, width: 1, bytes, has_identities: false };
        let line = bench.peers.with_tools(is_http, 0);
        cost(bench, &line, &load, "echo")
    })?;
    for curve in &mut curves {
        curve.points.retain(|(_, cost)| cost.is_finite());
    }
    Ok(Growth {
        file: "payload.svg",
        title: "Payload",
        x: "bytes",
        y: "CPU µs/call",
        about:
            "Calls of `echo`, one at a time; the message travels in both directions. By default, \
                bodies of HTTP requests are limited to 4 MiB."
                .to_owned(),
        curves,
    })
}

fn width(bench: &Bench) -> Result<Growth, String> {
    let widths = [1, 10, 100, 1_000, 10_000];
    let curves = curves(&widths, |width, is_http, revision| {
        let load = Load { is_http, revision, width, bytes: 64, has_identities: false };
        let line = bench.peers.with_tools(is_http, 0);
        Ok(cost(bench, &line, &load, "echo")? * width as f64)
    })?;
    Ok(Growth {
        file: "concurrent.svg",
        title: "Calls at a time",
        x: "calls at a time",
        y: "CPU µs for all",
        about: "Calls of `echo` with 64 bytes: a window over stdio, connections over HTTP."
            .to_owned(),
        curves,
    })
}

fn kept(bench: &Bench) -> Result<Growth, String> {
    // Some are open before the first measurement, and 10,000 are allowed.
    let counts = [100, 1_000, 3_000, 9_900];
    let line = bench.peers.with_tools(true, 0);
    let mut curves = Vec::new();
    for (name, kept) in [("sessions", Kept::Sessions), ("listen streams", Kept::Streams)] {
        let points = block_on(gained(&line, kept, &counts));
        let points = points.map_err(|error| format!("{name}: {error}"))?;
        curves.push(Curve { name: name.to_owned(), points });
    }
    let each = |curve: &Curve| {
        let (count, memory) = curve.points.last().copied().unwrap_or((f64::NAN, f64::NAN));
        format!("{}: {} each", curve.name, bytes(memory / count))
    };
    let each: Vec<String> = curves.iter().map(each).collect();
    Ok(Growth {
        file: "memory.svg",
        title: "Sessions and streams",
        x: "open",
        y: "bytes",
        about: format!(
            "Additional memory of the server over HTTP. An idle session of the legacy era needs no \
             connection; a stream of the modern era holds one. {}.",
            each.join("; ")
        ),
        curves,
    })
}
