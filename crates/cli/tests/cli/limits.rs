//! A process that may have next to nothing.

use crate::fixture::{Case, finish, start};

#[test]
fn too_few_descriptors_are_told_in_one_line_and_one_object() {
    let case = Case::new();
    let mut refused = 0;
    // From the fewest with which the loader can open a library.
    for limit in 4..24 {
        let script = format!("ulimit -n {limit}; exec");
        let done = finish(start(
            &mut case.command_after(&script, ["run", "--json", "--", "true"]),
        ));
        let object = done.object();
        if done.code() == 0 {
            continue;
        }
        refused += 1;
        assert_eq!(done.code(), 125, "{limit}: {}", done.stderr);
        assert_eq!(
            object["error"]["kind"], "resource_exhausted",
            "{limit}: {object:#}"
        );
        assert_eq!(object["cause"], "spawn_failed", "{limit}");
        let message = object["error"]["message"].as_str().expect("there is a message");
        assert_eq!(done.line(), message, "{limit}");
    }
    assert!(
        refused >= 6,
        "three streams, two for signals and one pipe need as many: {refused}"
    );
    case.assert_nothing_lives();
}
