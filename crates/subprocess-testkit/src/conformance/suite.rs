//! The list of all checks: the one place that a new check is added to.
//!
//! The public names of the checks come from this list, so one that is not on it is unreachable, and the compiler says so.

/// Gives `$callback!` the list of all checks, after whatever else is in the brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_checks {
    ([$($callback:tt)+] $($before:tt)*) => {
        $($callback)+! {
            $($before)*
            environment::item_1_credentials_and_managed_names_do_not_reach_a_child
            environment::item_2_ordinary_variables_reach_a_child
            environment::item_3_an_explicit_entry_wins_whatever_its_name
            environment::item_4_a_removed_entry_is_absent
            environment::item_5_names_are_compared_as_the_world_compares_them
            environment::item_6_the_terminal_type_is_the_callers
            lookup::item_10_an_empty_command_is_refused
            lookup::item_11_a_cancelled_lookup_finds_nothing
            lookup::item_12_an_absolute_path_is_answered_verbatim_or_refused
            lookup::item_13_a_relative_path_is_refused
            lookup::item_14_a_bare_name_is_searched_on_path
            lookup::item_179_a_miss_has_a_kind_of_its_own
            lookup::item_177_the_childs_own_path_decides
            spawn::item_18_a_grace_out_of_range_is_refused
            spawn::item_19_a_cancelled_token_starts_nothing
            spawn::item_20_a_program_must_be_named
            spawn::item_21_arguments_arrive_verbatim
            spawn::item_22_the_handle_of_a_failed_spawn_is_inert
            spawn::item_23_a_bad_directory_is_told_apart_from_a_bad_program
            spawn::item_24_an_argument_too_long_is_an_error_of_its_own
            spawn::item_178_a_nul_byte_is_refused_at_once
            spawn::item_171_the_id_is_known_when_promised
            spawn::item_176_a_cancellation_around_the_start_gives_the_signals_outcome
            spawn::item_176_an_error_before_exec_wins_over_a_cancellation
            spawn::issue_2_spawn_works_from_any_thread
            stdio::item_30_ignored_input_is_at_its_end
            stdio::item_31_data_arrives_whole_and_ends
            stdio::item_32_data_that_is_not_read_is_no_error
            stdio::item_33_a_handle_has_the_streams_it_was_asked_for
            stdio::item_33_a_raw_input_is_a_conversation
            stdio::item_34_an_inherited_stream_is_the_hosts
            stdio::item_35_a_raw_stream_gives_every_byte
            stdio::item_35_unread_raw_bytes_outlive_the_child
            stdio::item_36_the_streams_are_independent
            stdio::item_37_a_failed_write_is_the_streams_own_error
            stdio::o16_merged_streams_are_one
            stdio::raw_pipes_are_descriptors_where_promised
            output::item_38_reads_consume_nothing
            output::item_39_the_window_is_exact
            output::item_40_a_read_tells_its_gap
            output::item_41_an_offset_beyond_the_end_is_clamped
            output::item_42_a_character_split_across_reads_is_whole
            output::a_change_is_told_to_whoever_awaits_it
            output::item_183_a_snapshot_holds_the_window_and_the_total
            spill::item_44_a_spill_is_the_whole_stream
            spill::item_39_output_at_the_cap_makes_no_spill
            spill::item_46_a_spill_above_its_limit_is_withdrawn
            spill::item_46_a_spill_at_its_limit_is_complete
            spill::two_spills_of_one_runtime_are_told_apart
            outcome::item_56_an_exit_code_is_a_result
            outcome::item_56_a_signal_is_a_result
            outcome::an_exit_is_told_before_the_streams_end
            outcome::item_57_done_settles_at_close
            outcome::item_58_done_settles_when_the_drain_runs_out
            outcome::item_58_a_raw_stream_outlives_the_drain
            outcome::a_drain_is_cut_short
            outcome::a_drain_that_was_cut_before_the_exit_is_zero
            outcome::item_59_done_settles_once_for_everybody
            outcome::usage_is_measured_where_promised
            termination::item_61_term_comes_first_and_is_given_time
            termination::item_61_kill_comes_after_the_grace
            termination::item_61_every_member_is_ended
            termination::item_61_the_token_terminates
            termination::item_62_a_second_termination_joins_the_first
            termination::a_termination_begins_without_being_awaited
            termination::o4_a_stubborn_member_is_killed_after_its_leader
            termination::item_65_a_tree_that_is_gone_is_left_alone
            termination::item_69_the_wait_is_for_the_whole_tree
            termination::item_69_a_wait_can_be_cancelled
            termination::item_70_any_number_of_waits_see_the_end
            termination::item_73_a_job_in_a_group_of_its_own_is_ended
            termination::item_73_a_daemon_is_ended_or_named
            termination::a_stopped_member_is_continued_to_end
            termination::item_175_a_late_cancellation_ends_survivors
            termination::a_scoped_handle_ends_its_tree
            termination::a_dropped_handle_ends_nothing
            disposal::item_29_a_disposed_runtime_starts_nothing
            disposal::item_29_a_disposal_begins_when_it_is_called
            disposal::item_79_a_disposal_ends_every_tree
            disposal::item_79_a_failed_spawn_does_not_hinder_a_disposal
            disposal::item_79_a_disposal_can_be_awaited_twice
            disposal::handles_outlive_their_runtime
            disposal::two_runtimes_do_not_touch_each_other
            disposal::capabilities_are_true
            terminal_spawn::item_83_a_wrong_spec_starts_nothing
            terminal_spawn::item_84_an_abandoned_allocation_leaves_nothing
            terminal_spawn::item_84_the_token_is_for_the_allocation_alone
            terminal_spawn::item_85_the_program_leads_a_session_on_its_terminal
            terminal_spawn::item_85_the_environment_is_scrubbed
            terminal_spawn::item_86_a_program_that_cannot_run_is_an_error
            terminal_spawn::item_86_a_disposed_runtime_makes_no_terminal
            terminal_spawn::item_87_the_size_is_right_from_the_first_instruction
            terminal_spawn::item_180_the_system_and_the_shell_are_told
            terminal_spawn::item_184_the_terminal_type_becomes_term
            terminal_spawn::item_79_a_disposal_ends_every_terminal
            terminal_spawn::a_dropped_terminal_ends_nothing
            terminal_spawn::a_scoped_terminal_ends_its_session
            terminal_output::item_88_every_byte_value_is_printed_unchanged
            terminal_output::item_88_unread_output_holds_the_program_up
            terminal_output::item_89_done_does_not_wait_for_a_reader
            terminal_output::item_89_done_tells_how_the_program_ended
            terminal_output::o21_a_fast_exit_loses_nothing
            terminal_output::o21_a_holder_of_the_terminal_does_not_hold_up_the_end
            terminal_output::item_88_a_dropped_output_lets_the_program_go_on
            terminal_output::item_184_a_termination_needs_no_reader
            terminal_input::item_90_every_byte_value_is_typed_unchanged
            terminal_input::item_90_writes_follow_each_other
            terminal_input::item_90_a_write_after_the_exit_is_refused
            terminal_input::item_90_a_dropped_write_stops
            terminal_input::o22_a_large_paste_is_taken_before_anybody_reads
            terminal_input::o22_a_program_that_never_reads_is_told
            terminal_input::o22_a_session_that_never_reads_can_be_ended
            terminal_input::item_90_a_line_too_long_is_refused_whole
            terminal_input::item_90_bytes_have_no_longest_line
            terminal_input::item_184_a_resize_reaches_the_program
            terminal_input::item_184_a_resize_after_the_exit_is_refused
            terminal_foreground::item_91_the_program_is_in_the_foreground_at_first
            terminal_foreground::item_91_a_job_is_in_the_foreground_while_it_runs
            terminal_foreground::item_91_a_group_without_its_leader_is_found
            terminal_foreground::item_102_a_reader_of_the_terminal_waits
            terminal_foreground::item_102_a_program_that_does_not_read_does_not_wait
            terminal_foreground::item_103_a_reader_of_a_pipe_does_not_wait
            terminal_foreground::item_92_signals_reach_the_foreground
            terminal_foreground::item_92_the_programs_own_group_is_not_killed
            terminal_foreground::item_92_a_job_is_stopped_continued_and_killed
            terminal_foreground::item_92_after_the_exit_nobody_is_in_the_foreground
            terminal_end::item_93_a_termination_gives_time_to_clean_up
            terminal_end::item_93_kill_comes_after_the_grace
            terminal_end::item_93_a_second_termination_joins_the_first
            terminal_end::item_93_a_session_that_is_gone_is_left_alone
            terminal_end::item_94_every_member_of_the_session_is_ended
            terminal_end::item_96_a_daemon_is_ended_or_named
            terminal_end::item_97_the_exit_ends_the_session
            terminal_end::item_98_no_call_outlives_a_termination
            consumer::a_consumer_written_once_runs_in_every_world
        }
    };
}

/// Makes a test of every check of the [conformance suite](crate::conformance).
///
/// The expression makes the [`World`](crate::conformance::World); it is evaluated once for each test. Use it in a module of
/// its own for each world and each ownership tier.
///
/// ```
/// use std::sync::Arc;
/// use dsh_subprocess_testkit::conformance::World;
/// # use dsh_subprocess::NameCase;
/// # use dsh_subprocess_testkit::conformance::Guarantees;
/// use dsh_subprocess_testkit::scripted::ScriptedWorld;
///
/// fn scripted() -> World {
///     World {
///         runtime: Box::new(|| Arc::new(ScriptedWorld::free_running())),
///         probe: "world://bin/probe".into(),
///         // and so on
/// #       probe_name: "probe".into(),
/// #       probe_directory: "world://bin".into(),
/// #       directory: "world://work".into(),
/// #       file: "world://work/notes".into(),
/// #       missing: "world://nowhere".into(),
/// #       locked_directory: None,
/// #       shell: None,
/// #       hidden: vec!["SCRIPTED_API_KEY".into()],
/// #       kept: vec!["PATH".into()],
/// #       guarantees: Guarantees {
/// #           immediate_pid: false,
/// #           process_ids: false,
/// #           name_case: NameCase::Exact,
/// #           ends_session_leavers: true,
/// #           names_holders: true,
/// #           measures_usage: false,
/// #           spill: true,
/// #           raw_descriptors: false,
/// #           argument_limit: None,
/// #           terminal: true,
/// #           proves_input_waiting: true,
/// #       },
/// #       resources: Box::new(()),
///     }
/// }
///
/// mod a_scripted_world_keeps_the_contract {
///     dsh_subprocess_testkit::conformance_suite!(super::scripted());
/// }
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($world:expr) => {
        $crate::__conformance_checks!([$crate::__conformance_tests] $world;);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($world:expr; $($topic:ident::$check:ident)*) => {
        $(
            #[test]
            fn $check() {
                $crate::conformance::run(stringify!($check), async || {
                    let world: $crate::conformance::World = $world;
                    $crate::conformance::$check(&world).await;
                });
            }
        )*
    };
}

macro_rules! export {
    ($($topic:ident::$check:ident)*) => {
        $(pub use super::$topic::$check;)*
    };
}

crate::__conformance_checks!([export]);
