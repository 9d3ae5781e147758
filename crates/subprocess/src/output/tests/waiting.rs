//! Waiting for growth and for the end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::stream;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn changed_is_ready_where_there_is_already_more() {
    let (mut collector, reader) = stream(8, 0);
    collector.push(b"a");
    pollster::block_on(reader.changed(0));
    collector.seal();
    pollster::block_on(reader.changed(1));
    pollster::block_on(reader.changed(u64::MAX));
}

#[test]
fn changed_wakes_only_when_the_awaited_byte_is_there() {
    let (mut collector, reader) = stream(8, 0);
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut changed = pin!(reader.changed(3));
    assert!(changed.as_mut().poll(&mut context).is_pending());
    collector.push(b"abc");
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    collector.skip(1);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(changed.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_waiter_further_on_goes_on_waiting_when_a_nearer_one_is_served() {
    let (mut collector, reader) = stream(8, 0);
    let mut context = Context::from_waker(Waker::noop());
    let mut far = pin!(reader.changed(5));
    let mut near = pin!(reader.changed(0));
    assert_eq!(near.as_mut().poll(&mut context), Poll::Pending);
    assert_eq!(far.as_mut().poll(&mut context), Poll::Pending);
    collector.push(b"a");
    assert_eq!(near.as_mut().poll(&mut context), Poll::Ready(()));
    assert_eq!(far.as_mut().poll(&mut context), Poll::Pending);
    collector.push(b"bcdef");
    assert_eq!(far.as_mut().poll(&mut context), Poll::Ready(()));
}

#[test]
fn a_dropped_waiter_takes_no_wake_up_from_another() {
    let (mut collector, reader) = stream(8, 0);
    let mut context = Context::from_waker(Waker::noop());
    let mut stays = pin!(reader.changed(0));
    assert!(stays.as_mut().poll(&mut context).is_pending());
    let mut leaves = reader.changed(0);
    assert!(leaves.as_mut().poll(&mut context).is_pending());
    drop(leaves);
    collector.push(b"a");
    assert!(stays.as_mut().poll(&mut context).is_ready());
}

/// Many readers on threads of their own, on a bare executor, each following the stream to its end: every missed wake-up
/// would hang one of them.
#[test]
fn o18_followers_see_every_byte_once_up_to_the_last() {
    const BYTES: usize = 20_000;
    let (mut collector, reader) = stream(BYTES, 0);
    let followers: Vec<_> = (0..8)
        .map(|_| {
            let reader = reader.clone();
            thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    let read = reader.read_from(seen.len() as u64);
                    assert_eq!((read.gap, read.clamped), (0, false));
                    seen.extend_from_slice(&read.bytes);
                    if read.sealed {
                        return seen;
                    }
                    pollster::block_on(reader.changed(read.next_offset));
                }
            })
        })
        .collect();
    let written: Vec<u8> = (0..=250).cycle().take(BYTES).collect();
    for chunk in written.chunks(7) {
        collector.push(chunk);
    }
    drop(collector);
    for follower in followers {
        assert_eq!(follower.join().expect("the follower ends"), written);
    }
}
