# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_dsh_subprocess_global_optspecs
    string join \n h/help V/version
end

function __fish_dsh_subprocess_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_dsh_subprocess_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_dsh_subprocess_using_subcommand
    set -l cmd (__fish_dsh_subprocess_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -s h -l help -d 'Print help'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -s V -l version -d 'Print version'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "run" -d 'Runs one command to its end, and ends whatever of its tree is left then'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "sh" -d 'Runs one command text in a shell, as an agent\'s tool does, and prints what a model would see of it'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "mcp" -d 'Serves the Model Context Protocol: agents run their commands through it, each in a process tree that is owned'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "term" -d 'Runs one command on a terminal of its own, and ends whatever of its tree is left at its end'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "exec" -d 'Runs one command in this process\'s place, for programs that start their child themselves'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "doctor" -d 'Tells how well this machine can own process trees, and what would improve it'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "completions" -d 'Prints the completions of a shell'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_needs_command" -f -a "man" -d 'Prints a manual page, in roff'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l cwd -d 'Run in this directory [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l env -d 'Set a variable for the command, whatever its name; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l unset -d 'Remove a variable from the command\'s environment; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l timeout -d 'End the tree after this long, as in 500ms, 1.5s, 2m, 1h [default: no limit]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l grace -d 'Time between SIGTERM and SIGKILL when the tree is ended' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l drain -d 'How long output is awaited, after the command\'s end, from whoever still holds it open' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l max-bytes -d 'With --json, bytes kept from the end of each stream, as in 4096, 64K, 1M' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l head-bytes -d 'With --json, bytes kept from the beginning of each stream beside its end' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l spill-max-bytes -d 'With --json, write a stream that exceeds --max-bytes to a file, up to this size [default: no file, or 1G with --keep-spill]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l stdin -d 'Give the command this text to read, or with `-` what this process reads [default: nothing]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l stdin-file -d 'Give the command this file to read' -r -F
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l ownership -d 'The mechanism that owns the tree' -r -f -a "auto\t'The strongest one that works here'
cgroup\t'A control group: nothing the command starts can leave it'
reaper\t'A small process beside the tree that adopts whatever is orphaned in it; needs no privilege'
process-group\t'The process group and session: a daemon may survive'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l keep-spill -d 'With --json, leave that file behind and say where it is'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l merge-stderr -d 'Send stderr where stdout goes, in the order the command wrote them'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l quiet -d 'Print no line of facts'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -l json -d 'Print one JSON object instead of the output, in every case'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l cwd -d 'Run in this directory [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l env -d 'Set a variable for the command, whatever its name; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l unset -d 'Remove a variable from the command\'s environment; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l timeout -d 'End the tree after this long, as in 500ms, 1.5s, 2m, 1h' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l grace -d 'Time between SIGTERM and SIGKILL when the tree is ended' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l max-bytes -d 'Bytes kept of each stream, as in 4096, 64K, 1M: a quarter from its beginning, the rest from its end' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l spill-max-bytes -d 'With --keep-spill, the largest such file [default: 64M]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l stdin -d 'Give the command this text to read, or with `-` what this process reads [default: nothing]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l stdin-file -d 'Give the command this file to read' -r -F
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l shell -d 'The shell that reads the text' -r -f -a "(__fish_complete_command)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l session -d 'The agent\'s session, which the command is told as DSH_SESSION_ID' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l ownership -d 'The mechanism that owns the tree' -r -f -a "auto\t'The strongest one that works here'
cgroup\t'A control group: nothing the command starts can leave it'
reaper\t'A small process beside the tree that adopts whatever is orphaned in it; needs no privilege'
process-group\t'The process group and session: a daemon may survive'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l file -d 'Take the text from this file, or with `-` from what this process reads: of any length' -r -F
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l no-timeout -d 'Set no time limit'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l keep-spill -d 'Write a stream that exceeds --max-bytes to a file, leave it behind and say where it is'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l merge-stderr -d 'Send stderr where stdout goes, in the order the command wrote them'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -l json -d 'Print one JSON object with every fact instead, in every case'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand sh" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l http -d 'Listen on this address instead, as in 127.0.0.1:8080; port 0 takes a free one' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l token-file -d 'The file with the token that clients must show; it is made where it is missing [default: mcp-token below $XDG_RUNTIME_DIR/dsh-subprocess or $XDG_STATE_HOME/dsh-subprocess]' -r -F
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l allow-origin -d 'Serve pages of this origin in browsers, named by scheme, host and port; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l allow-host -d 'Answer to this name beside the address itself and localhost, as in build.example.org; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l cwd -d 'Run commands in this directory, unless they name another [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l timeout -d 'End a command after this long that names no timeout' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l max-timeout -d 'The longest timeout; a longer one is shortened to it' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l max-bytes -d 'Bytes kept of each stream in memory, as in 4096, 64K, 1M: a quarter from its beginning, the rest from its end' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l grace -d 'Time between SIGTERM and SIGKILL when a tree is ended' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l left-behind -d 'What becomes of processes that outlive their command' -r -f -a "end\t'They are ended'
job\t'They go on as a job of the session'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l shell -d 'The shell that reads the commands' -r -f -a "(__fish_complete_command)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l env -d 'Set a variable for every command, whatever its name; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l keep -d 'Let a variable of this process through the scrub; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l ownership -d 'The mechanism that owns the trees' -r -f -a "auto\t'The strongest one that works here'
cgroup\t'A control group: nothing the command starts can leave it'
reaper\t'A small process beside the tree that adopts whatever is orphaned in it; needs no privilege'
process-group\t'The process group and session: a daemon may survive'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l log -d 'What is told on stderr; never a command, its output, or a secret' -r -f -a "off\t'Nothing'
error\t'What failed'
warn\t'And what may be wrong'
info\t'And the beginning and end of sessions'
debug\t'And single steps'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l allow-remote -d 'Listen on an address that other machines reach: the protocol is not encrypted, and whoever reads the token on its way can run any command'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -l keep-jobs -d 'Let the jobs of a session that ends run on, at most as long as this process'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l rows -d 'Lines of the terminal, 1 to 65535 [default: those of the attached terminal, or 24]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l cols -d 'Columns of the terminal, 1 to 65535 [default: those of the attached terminal, or 80]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l term -d 'What the command is to take the terminal for; becomes TERM [default: TERM where a terminal is attached, or xterm-256color]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l record -d 'Write what the terminal shows to this new file, in asciicast v2; what is typed is not recorded' -r -F
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l cwd -d 'Run in this directory [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l env -d 'Set a variable for the command, whatever its name; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l unset -d 'Remove a variable from the command\'s environment; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l timeout -d 'End the tree after this long, as in 500ms, 1.5s, 2m, 1h [default: no limit]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l grace -d 'Time between SIGTERM and SIGKILL when the tree is ended' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l drain -d 'How long output is awaited, after the command\'s end, from whoever still has the terminal open' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l max-bytes -d 'With --json, bytes kept from the end of what the terminal shows, as in 4096, 64K, 1M' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l head-bytes -d 'With --json, bytes kept from its beginning beside its end' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l ownership -d 'The mechanism that owns the tree' -r -f -a "auto\t'The strongest one that works here'
cgroup\t'A control group: nothing the command starts can leave it'
reaper\t'A small process beside the tree that adopts whatever is orphaned in it; needs no privilege'
process-group\t'The process group and session: a daemon may survive'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l quiet -d 'Print no line of facts'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -l json -d 'Print one JSON object on stdout, in every case, and nothing else there'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand term" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l cwd -d 'Run in this directory [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l scrub -d 'What the environment loses: credentials by name and by value, by name alone, or nothing' -r -f -a "all\t'Names and values that look like credentials'
names\t'Names alone'
off\t'Nothing: the command gets the whole environment'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l keep -d 'Let a variable through the scrub; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l env -d 'Set a variable for the command, whatever its name; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l unset -d 'Remove a variable from the command\'s environment; may be given several times' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l grace -d 'Time between SIGTERM and SIGKILL when the tree is ended' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l die-with -d 'End the tree when this process ends [default: this process\'s parent]' -r
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -l ownership -d 'The mechanism that owns the tree' -r -f -a "auto\t'The strongest one that works here'
cgroup\t'A control group: nothing the command starts can leave it'
reaper\t'A small process beside the tree that adopts whatever is orphaned in it; needs no privilege'
process-group\t'The process group and session: a daemon may survive'"
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand doctor" -l json -d 'Print one JSON object'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand completions" -s h -l help -d 'Print help'
complete -c dsh-subprocess -n "__fish_dsh_subprocess_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
