//! Who holds a command's output from outside of its tree.

use dsh_shell::{Fate, ShellRequest, StreamName};
use dsh_subprocess_testkit::scripted::{Script, ScriptedMember};

use crate::stage::Stage;

#[test]
fn a_holder_outside_of_the_tree_is_named_once() {
    let daemon = ScriptedMember::new(77, "daemon")
        .escaping()
        .holding(StreamName::Stdout)
        .holding(StreamName::Stderr);
    let other = ScriptedMember::new(78, "other")
        .escaping()
        .holding(StreamName::Stdout)
        .holding(StreamName::Stderr);
    let stage = Stage::with(
        Script::new().stdout("done\n").bears(daemon).bears(other).exits(0),
        |_| {},
    );
    stage.play(async {
        let spec = stage
            .shell
            .resolve(ShellRequest::new("daemon; other"))
            .expect("it is valid");
        let result = stage.shell.run(spec).await.expect("it is run");
        assert_eq!(&result.stdout.snapshot.tail[..], b"done\n");
        let left_behind = result.left_behind.expect("somebody holds its output");
        let named: Vec<&str> = left_behind
            .members
            .iter()
            .map(|member| &member.command[..])
            .collect();
        assert_eq!(named, ["daemon", "other"]);
        assert!(matches!(left_behind.fate, Fate::Survives(_)), "{left_behind:?}");
    });
}
