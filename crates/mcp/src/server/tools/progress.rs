//! Word of a long command while it runs.

use std::time::Duration;

use dsh_shell::Execution;
use dsh_shell::render::fold;
use dsh_subprocess::OutputReader;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::shown::clip;

/// How far back from its end a stream is looked at for its last line, in bytes.
const LOOK_BACK: u64 = 2048;

/// The longest last line that is told, in characters.
const LINE_CHARACTERS: usize = 160;

/// Tells the client of a call, until dropped: that it asked to be told, at most once per interval.
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    interval: Duration,
}

impl Progress {
    /// `None` where the client did not ask.
    pub(super) fn of(context: &RequestContext<RoleServer>, interval: Duration) -> Option<Self> {
        Some(Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token()?,
            interval,
        })
    }

    /// Tells, for as long as it is polled.
    ///
    /// A client that does not read holds this up, and nothing else.
    pub(super) async fn tell_of(&self, execution: &Execution) {
        let begin = Instant::now();
        let mut ticks = interval_at(begin + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let elapsed = begin.elapsed();
            let message = message(elapsed, execution);
            let told = ProgressNotificationParam::new(self.token.clone(), elapsed.as_secs_f64())
                .with_message(message);
            if self.peer.notify_progress(told).await.is_err() {
                return;
            }
        }
    }
}

fn message(elapsed: Duration, execution: &Execution) -> String {
    let streams = [Some(execution.stdout()), execution.stderr()];
    let bytes: u64 = streams.into_iter().flatten().map(OutputReader::total).sum();
    let line = streams.into_iter().flatten().find_map(last_line);
    let mut message = format!("{} s, {bytes} bytes of output", elapsed.as_secs());
    if let Some(line) = line {
        message.push_str(": ");
        message.push_str(&line);
    }
    message
}

/// Returns the last line that has something in it, as a terminal shows it.
fn last_line(reader: &OutputReader) -> Option<String> {
    let read = reader.read_from(reader.total().saturating_sub(LOOK_BACK));
    let text = String::from_utf8_lossy(&read.bytes);
    let folded = fold(&text);
    let line = folded.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(clip(line, LINE_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use dsh_subprocess::{Collect, Collector};

    use super::*;

    fn last_line_of(content: &[u8]) -> Option<String> {
        let collect = Collect {
            max_bytes: 10_000,
            head_bytes: 0,
            spill: None,
        };
        let (mut collector, reader) = Collector::new(&collect, None);
        collector.push(content);
        last_line(&reader)
    }

    #[test]
    fn the_last_line_is_what_a_terminal_shows() {
        assert_eq!(last_line_of(b"one\ntwo\n\n  \n").as_deref(), Some("two"));
        assert_eq!(
            last_line_of(b"\r 10%\r\x1b[32m 20%\x1b[0m").as_deref(),
            Some("20%")
        );
        assert_eq!(last_line_of(b"\n \n"), None);
        assert_eq!(last_line_of(b""), None);
    }

    #[test]
    fn a_long_last_line_is_clipped() {
        let line = last_line_of(&[b'x'; 9000]).expect("there is a line");
        assert_eq!(line.chars().count(), LINE_CHARACTERS + 1);
    }
}
