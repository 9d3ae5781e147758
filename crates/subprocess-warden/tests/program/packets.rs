//! The protocol: what is written is read, and nothing else is.

use dsh_subprocess_warden::protocol::{
    Exited, Failed, FromRuntime, FromTree, LIMITS, Launch, PACKET, PATH, Packet, SAMPLE, Standard, ToRuntime,
    ToTree,
};
use proptest::prelude::*;

fn standard(merge: bool) -> BoxedStrategy<Standard> {
    let plain = prop_oneof![Just(Standard::Sent), Just(Standard::Null)];
    if merge {
        prop_oneof![plain, Just(Standard::Merge)].boxed()
    } else {
        plain.boxed()
    }
}

prop_compose! {
    fn launch()(
        stdio in (standard(false), standard(false), standard(true)),
        control in any::<bool>(),
        words in any::<[u32; 5]>(),
        arguments in 1..=u32::MAX,
        limits in any::<[(u64, u64); LIMITS]>(),
    ) -> Launch<'static> {
        Launch {
            grace: words[0],
            stdio: [stdio.0, stdio.1, stdio.2],
            control,
            group: words[1],
            umask: words[2],
            limits,
            arguments,
            environment: words[3],
            candidates: words[4],
            length: 0,
            block: &[],
        }
    }
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1..=255_u8, 0..PATH - 1).prop_map(|mut path| {
        path.insert(0, b'/');
        path
    })
}

proptest! {
    #[test]
    fn a_launch_is_read_as_it_was_written(mut launch in launch(), block in prop::collection::vec(any::<u8>(), 0..9000)) {
        launch.length = u32::try_from(block.len()).expect("it is short");
        launch.block = &block;
        let mut packet = Packet::new();
        ToTree::Launch(launch).encode(&mut packet).expect("it fits");
        prop_assert_eq!(ToTree::decode(packet.bytes()), Ok(ToTree::Launch(launch)));
        // One byte less, or more, is another block than was said.
        let bytes = packet.bytes();
        if block.len() > 1 {
            prop_assert!(ToTree::decode(&bytes[..bytes.len() - 1]).is_err());
            prop_assert!(ToTree::decode(&[bytes, b"x"].concat()).is_err());
        }
    }

    #[test]
    fn a_path_is_read_as_it_was_written(path in path()) {
        let messages = [
            ToRuntime::Group(&path), ToRuntime::Directory(&path), ToRuntime::Record(&path), ToRuntime::Forget(&path),
        ];
        for message in messages {
            let mut packet = Packet::new();
            message.encode(&mut packet).expect("it fits");
            prop_assert_eq!(ToRuntime::decode(packet.bytes()), Ok(message));
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written(
        words in any::<[u32; 3]>(), errno in any::<i32>(), times in any::<[u64; 3]>(), core_dumped in any::<bool>(),
        sample in prop::collection::vec(any::<u8>(), 0..=SAMPLE),
    ) {
        let [first, second, third] = words;
        let answers = [
            FromTree::Idle { pid: first },
            FromTree::Cloned { pid: first },
            FromTree::Running { pid: first, session_errno: errno },
            FromTree::Failed(Failed { step: first, errno, candidate: second, mode: third, sample: &sample }),
            FromTree::Exited(Exited {
                code: first, signal: second, core_dumped, user: times[0], system: times[1], peak_memory: times[2],
            }),
            FromTree::Gone { user: times[0], system: times[1] },
        ];
        for answer in answers {
            let mut packet = Packet::new();
            answer.encode(&mut packet).expect("it fits");
            prop_assert_eq!(FromTree::decode(packet.bytes()), Ok(answer));
        }
        for answer in [FromRuntime::Ready { version: first, pid: second }, FromRuntime::NoTree { errno }] {
            let mut packet = Packet::new();
            answer.encode(&mut packet).expect("it fits");
            prop_assert_eq!(FromRuntime::decode(packet.bytes()), Ok(answer));
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0..9_u8) {
        let mut bytes = bytes;
        bytes.insert(0, kind);
        // What is read is written as the same bytes again: there is one way to say a thing.
        let mut packet = Packet::new();
        if let Ok(message) = ToTree::decode(&bytes) {
            message.encode(&mut packet).expect("it came in a packet");
            prop_assert_eq!(packet.bytes(), &bytes);
        }
        packet.clear();
        if let Ok(message) = ToRuntime::decode(&bytes) {
            message.encode(&mut packet).expect("it came in a packet");
            prop_assert_eq!(packet.bytes(), &bytes);
        }
        packet.clear();
        if let Ok(message) = FromTree::decode(&bytes) {
            message.encode(&mut packet).expect("it came in a packet");
            prop_assert_eq!(packet.bytes(), &bytes);
        }
        packet.clear();
        if let Ok(message) = FromRuntime::decode(&bytes) {
            message.encode(&mut packet).expect("it came in a packet");
            prop_assert_eq!(packet.bytes(), &bytes);
        }
    }
}

#[test]
fn a_block_that_does_not_fit_is_refused() {
    let block = vec![b'x'; PACKET];
    let launch = Launch {
        grace: 0,
        stdio: [Standard::Null; 3],
        control: false,
        group: 0,
        umask: 0,
        limits: [(0, 0); LIMITS],
        arguments: 1,
        environment: 0,
        candidates: 0,
        length: u32::try_from(block.len()).expect("it is short"),
        block: &block,
    };
    assert!(ToTree::Launch(launch).encode(&mut Packet::new()).is_err());
}

#[test]
fn what_is_no_path_is_refused() {
    let long = [b"/".as_slice(), &[b'x'; PATH]].concat();
    for path in [&b""[..], b"relative", b"/with\0nul", &long] {
        assert!(ToRuntime::Directory(path).encode(&mut Packet::new()).is_err());
        assert!(ToRuntime::decode(&[b"\x04", path].concat()).is_err());
    }
}
