//! Many messages over one connection.

use bowline::{Context, with_causes};

use super::outcome::{BatchReceipt, Failed};
use crate::arguments::BatchArguments;
use crate::destination::{Destination, Transport};
use crate::identity::Identity;
use crate::logger::{Logger, Parcel, SendError};
use crate::plan::PlanError;
use crate::receipt::Delivery;

/// Sends all messages, or reports how many were sent before the failure.
///
/// Validates all messages before sending the first.
pub(super) async fn send(
    logger: &Logger,
    arguments: BatchArguments,
    context: &Context,
) -> Result<BatchReceipt, Failed> {
    let to = logger.destination(&arguments.endpoint).map_err(SendError::from)?;
    let parcels = prepare(logger, &to, arguments, &Identity::of(context))?;
    let mut receipt = BatchReceipt {
        target: to.to_string(),
        transport: to.transport,
        sent: 0,
        messages: 0,
        bytes: 0,
        truncated: 0,
        waiting: None,
        delivery: match to.transport {
            Transport::Udp => Delivery::Unconfirmed,
            _ => Delivery::Written,
        },
    };
    let packets = || parcels.iter().flat_map(|it| it.packets.packets.clone()).collect();
    let sending = send_all(logger, &to, &parcels, &mut receipt, context);
    let sent = logger.or_spool(&to, packets, sending).await;
    let waiting = sent.map_err(|cause| Failed::part_way(cause, receipt.sent, parcels.len()))?;
    if let Some(waiting) = waiting {
        for parcel in &parcels {
            logger.remember(&to, parcel, "spooled".to_owned());
        }
        (receipt.sent, receipt.delivery) = (0, Delivery::Spooled);
        receipt.waiting = Some(waiting);
    }
    Ok(receipt)
}

fn prepare(
    logger: &Logger,
    to: &Destination,
    arguments: BatchArguments,
    caller: &Identity,
) -> Result<Vec<Parcel>, SendError> {
    let BatchArguments { messages, options, .. } = arguments;
    let mut parcels = Vec::with_capacity(messages.len());
    for (index, entry) in messages.into_iter().enumerate() {
        let malformed = |cause| PlanError::Entry { index, cause: Box::new(cause) };
        let options = entry.options.or(&options);
        let parcel = logger.prepare(to, options, &entry.message, Some(caller));
        let parcel = parcel.map_err(malformed)?;
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
            if let Err(error) = &sent {
                logger.remember(to, parcel, with_causes(error));
            }
            sent?;
        }
        logger.remember(to, parcel, "sent".to_owned());
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
