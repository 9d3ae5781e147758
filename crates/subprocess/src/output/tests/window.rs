//! The window against a model that keeps the whole stream.

use std::io;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::output::window::{Window, reserve};

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    /// What a read delivers, and how much more it claims.
    Fill(Vec<u8>, usize),
    FailedFill,
    Skip(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec(any::<u8>(), 0..24).prop_map(Step::Push),
        2 => vec(any::<u8>(), 0..200).prop_map(Step::Push),
        6 => (vec(any::<u8>(), 0..24), prop_oneof![9 => Just(0_usize), 1 => Just(1000)])
            .prop_map(|(bytes, lie)| Step::Fill(bytes, lie)),
        1 => Just(Step::FailedFill),
        1 => any::<u8>().prop_map(Step::Skip),
    ]
}

/// The whole stream; `None` is a byte that was skipped.
#[derive(Default)]
struct Model {
    stream: Vec<Option<u8>>,
}

impl Model {
    fn push(&mut self, bytes: &[u8]) {
        self.stream.extend(bytes.iter().copied().map(Some));
    }

    fn known(&self, from: usize, to: usize) -> Vec<u8> {
        self.stream[from..to]
            .iter()
            .map(|byte| byte.expect("no skipped byte is served"))
            .collect()
    }

    fn tail_start(&self, max_bytes: usize) -> usize {
        let hole = self
            .stream
            .iter()
            .rposition(Option::is_none)
            .map_or(0, |hole| hole + 1);
        hole.max(self.stream.len().saturating_sub(max_bytes))
    }

    fn head_length(&self, max_bytes: usize, head_bytes: usize) -> usize {
        let hole = self
            .stream
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.stream.len());
        head_bytes.min(hole).min(self.tail_start(max_bytes))
    }
}

/// Delivers bytes as `readv` would.
fn deliver(mut bytes: &[u8], buffers: &mut [io::IoSliceMut<'_>]) -> usize {
    let mut delivered = 0;
    for buffer in buffers {
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        bytes = &bytes[count..];
        delivered += count;
    }
    delivered
}

fn apply(step: &Step, window: &mut Window, model: &mut Model) {
    match step {
        Step::Push(bytes) => {
            window.push(bytes);
            model.push(bytes);
        }
        Step::Fill(bytes, lie) if window.is_full() => {
            // A lie makes old bytes pass for new ones: then the model sees what the storage held.
            let mut seen = Vec::new();
            let count = window.fill(|buffers| {
                let delivered = deliver(bytes, buffers);
                if *lie > 0 {
                    seen = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
                } else {
                    seen = bytes[..delivered].to_vec();
                }
                Ok(delivered + lie)
            });
            assert_eq!(count.expect("the read succeeds"), seen.len());
            model.push(&seen);
        }
        Step::FailedFill if window.is_full() => {
            window
                .fill(|_| Err(io::ErrorKind::Interrupted.into()))
                .expect_err("the read failed");
        }
        Step::Fill(..) | Step::FailedFill => {}
        Step::Skip(count) => {
            window.skip(u64::from(*count));
            model.stream.extend((0..*count).map(|_| None));
        }
    }
}

fn compare(window: &Window, model: &Model, max_bytes: usize, head_bytes: usize) {
    let total = model.stream.len();
    let tail_start = model.tail_start(max_bytes);
    let head_length = model.head_length(max_bytes, head_bytes);
    assert_eq!(window.total(), total as u64);
    assert_eq!(window.tail().concat(), model.known(tail_start, total));
    assert_eq!(window.head(), model.known(0, head_length));
    assert!(
        window.allocated() <= max_bytes + head_bytes,
        "{} bytes allocated",
        window.allocated()
    );

    let first = if head_length == tail_start { 0 } else { tail_start };
    for asked in 0..total + 3 {
        for limit in [0, 1, 5, usize::MAX] {
            let read = window.read(asked as u64, limit);
            let wanted = asked.min(total);
            let offset = wanted.max(first);
            assert_eq!(read.offset, offset as u64);
            assert_eq!(read.gap, (offset - wanted) as u64);
            assert_eq!(read.clamped, asked > total);
            assert_eq!(
                read.bytes,
                model.known(offset, offset.saturating_add(limit).min(total))
            );
            assert!(
                read.bytes.capacity() <= read.bytes.len(),
                "a read costs what it returns"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn item_39_the_window_is_exactly_the_last_and_first_bytes_whatever_the_chunks(
        max_bytes in prop_oneof![Just(0_usize), Just(1), 2_usize..80],
        head_bytes in prop_oneof![Just(0_usize), Just(1), 2_usize..80],
        steps in vec(step(), 0..30),
    ) {
        let mut window = Window::new(max_bytes, head_bytes);
        let mut model = Model::default();
        for step in &steps {
            apply(step, &mut window, &mut model);
        }
        compare(&window, &model, max_bytes, head_bytes);
    }
}

#[test]
fn an_idle_window_allocates_nothing() {
    assert_eq!(Window::new(usize::MAX, usize::MAX).allocated(), 0);
    let mut window = Window::new(usize::MAX, usize::MAX);
    window.push(b"");
    window.skip(1 << 50);
    assert_eq!(window.allocated(), 0);
    window.push(b"a");
    assert!(window.allocated() <= 1024);
}

#[test]
fn item_54_one_byte_chunks_cost_what_one_large_chunk_costs() {
    const MAX_BYTES: usize = 64_000;
    const HEAD_BYTES: usize = 1_000;
    let mut window = Window::new(MAX_BYTES, HEAD_BYTES);
    let mut allocations = 0;
    for at in 0..300_000_u32 {
        let before = window.allocated();
        window.push(&at.to_le_bytes()[..1]);
        allocations += usize::from(window.allocated() != before);
        assert!(window.allocated() <= MAX_BYTES + HEAD_BYTES);
    }
    assert_eq!(window.allocated(), MAX_BYTES + HEAD_BYTES);
    assert!(allocations <= 12, "{allocations} allocations: growth must double");
    assert_eq!(window.tail().concat().len(), MAX_BYTES);

    let mut at_once = Window::new(MAX_BYTES, HEAD_BYTES);
    at_once.push(&(0..300_000_u32).map(|at| at.to_le_bytes()[0]).collect::<Vec<_>>());
    assert_eq!(at_once.allocated(), window.allocated());
    assert_eq!(at_once.tail().concat(), window.tail().concat());
    assert_eq!(at_once.head(), window.head());
}

#[test]
fn storage_is_kept_over_a_skip() {
    let mut window = Window::new(4096, 0);
    window.push(&[1; 5000]);
    window.skip(10);
    window.push(&[2; 3000]);
    assert_eq!(window.tail().concat(), [2; 3000]);
    assert_eq!(window.allocated(), 4096);
}

/// No machine has so much memory. The window keeps what it can instead of ending its host.
#[test]
fn a_window_that_memory_cannot_be_had_for_goes_on_with_what_it_has() {
    let mut buffer = vec![1, 2, 3];
    let capacity = buffer.capacity();
    assert!(!reserve(&mut buffer, isize::MAX as usize + 1, usize::MAX));
    assert_eq!((&buffer[..], buffer.capacity()), (&[1, 2, 3][..], capacity));
    // Never more than the limit.
    let limit = 600;
    assert!(reserve(&mut buffer, limit, limit));
    assert_eq!(buffer.capacity(), limit);
}
