//! What a client is told without having asked: the end of a job, and that there are other outputs to read.

#![expect(
    deprecated,
    reason = "revisions of the protocol before 2026-07-28 have log messages, and nothing else to tell of a job's end"
)]

use dsh_jobs::Notice;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    ResourceListChangedNotification, ServerNotification,
};
use rmcp::service::Peer;
use serde_json::json;

use super::session::{INFO, SessionRef};

/// Tells a client, until its session is closed. One thing after the other, so a client that does not read is told less, and
/// costs nothing.
pub(super) async fn announce(session: SessionRef, peer: Peer<RoleServer>) {
    let mut changes = session.outputs().changes();
    loop {
        let notification = tokio::select! {
            () = session.closed() => return,
            notice = notice(&session) => match notice {
                // A log message disturbs nobody, so it makes no difference how the registry would deliver it.
                Some(notice) => ended(&notice),
                None => return,
            },
            changed = changes.changed() => match changed {
                Ok(()) => ServerNotification::ResourceListChangedNotification(ResourceListChangedNotification::default()),
                Err(_) => return,
            },
        };
        tokio::select! {
            () = session.closed() => return,
            told = peer.send_notification(notification) => {
                if let Err(error) = told {
                    tracing::debug!(%error, "a client was not told");
                }
            }
        }
    }
}

/// Waits for the end of a job that the client is to be told of. A client that wants no such messages has been told of nothing:
/// to take a notice is to report the job.
async fn notice(session: &SessionRef) -> Option<Notice> {
    loop {
        session.logs(INFO, true).await;
        tokio::select! {
            biased;
            () = session.logs(INFO, false) => {}
            notice = session.jobs().notice() => return notice,
        }
    }
}

/// Words the end of a job. What it printed is read with `job_output`.
fn ended(notice: &Notice) -> ServerNotification {
    let info = &notice.info;
    let data = json!({
        "message": match &info.detail {
            Some(detail) => format!("job {} has ended: {}, {detail}", info.id, info.status),
            None => format!("job {} has ended: {}", info.id, info.status),
        },
        "job_id": info.id.as_str(),
        "status": info.status.as_str(),
        "detail": info.detail,
    });
    let param = LoggingMessageNotificationParam::new(LoggingLevel::Info, data).with_logger("jobs");
    ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(param))
}

/// Returns a level's place in the protocol's list, which begins with the least severe.
pub(super) fn place_of(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => INFO,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
