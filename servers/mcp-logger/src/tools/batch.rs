//! Many messages over one connection.

use bowline::Context;

use super::outcome::{BatchReceipt, Failed};
use crate::arguments::BatchArguments;
use crate::destination::{Destination, Transport};
use crate::logger::{Delivery, Logger, Parcel, SendError};
use crate::plan::PlanError;

/// Sends all messages, or reports how many were sent before the failure.
///
/// Validates all messages before sending the first.
pub(super) async fn send(
    logger: &Logger,
    arguments: BatchArguments,
    context: &Context,
) -> Result<BatchReceipt, Failed> {
    let to = logger.destination(&arguments.endpoint).map_err(SendError::from)?;
    let parcels = prepare(logger, &to, arguments)?;
    let mut receipt = BatchReceipt {
        target: to.to_string(),
        transport: to.transport,
        sent: 0,
        messages: 0,
        bytes: 0,
        truncated: 0,
        delivery: match to.transport {
            Transport::Udp => Delivery::Unconfirmed,
            _ => Delivery::Written,
        },
    };
    let sent = send_all(logger, &to, &parcels, &mut receipt, context).await;
    sent.map_err(|cause| Failed::part_way(cause, receipt.sent, parcels.len()))?;
    Ok(receipt)
}

fn prepare(
    logger: &Logger,
    to: &Destination,
    arguments: BatchArguments,
) -> Result<Vec<Parcel>, SendError> {
    let BatchArguments { messages, options, .. } = arguments;
    let mut parcels = Vec::with_capacity(messages.len());
    for (index, entry) in messages.into_iter().enumerate() {
        let malformed = |cause| PlanError::Entry { index, cause: Box::new(cause) };
        let options = entry.options.or(&options);
        let parcel = logger.prepare(to, options, &entry.message).map_err(malformed)?;
        parcel.receipt(to)?;
        parcels.push(parcel);
    }
    Ok(parcels)
}

async fn send_all(
    logger: &Logger,
    to: &Destination,
    parcels: &[Parcel],
    receipt: &mut BatchReceipt,
    context: &Context,
) -> Result<(), SendError> {
    let mut link = logger.network().open(to).await?;
    for parcel in parcels {
        logger.rate().wait(parcel.packets.packets.len()).await;
        for packet in &parcel.packets.packets {
            let sent = link.send(packet).await.map_err(SendError::from);
            if sent.is_err() {
                logger.remember(to, parcel, sent.as_ref().copied());
            }
            sent?;
        }
        logger.remember(to, parcel, Ok(()));
        let one = parcel.receipt(to)?;
        receipt.sent += 1;
        receipt.messages += one.messages;
        receipt.bytes += one.bytes;
        receipt.truncated += usize::from(one.truncated);
        report(context, receipt.sent, parcels.len());
    }
    Ok(link.finish().await?)
}

#[expect(clippy::cast_precision_loss, reason = "batches are short")]
fn report(context: &Context, sent: usize, of: usize) {
    context.progress(sent as f64, of as f64, &format!("sent {sent} of {of}"));
}
