"""Commands in the foreground."""

import asyncio

import anyio

import processes
from results import answered, refused, text
from server import SECRETS, Http, Stdio, StdioWithHandshake, marking

# Long enough that a test which has to wait for its end fails by its bound.
FOREVER = 300


class Bash:
    async def test_output_and_status_come_back(self):
        async with self.connect() as client:
            result = await client.call_tool("bash", {"command": "echo out; echo err >&2"})
            facts = result.structured_content
            self.assertFalse(result.is_error)
            self.assertEqual(facts["kind"], "foreground")
            self.assertEqual((facts["exit_code"], facts["signal"], facts["cause"]), (0, None, "ended"))
            self.assertEqual(facts["stdout"]["total_bytes"], 4)
            self.assertEqual(facts["stderr"]["total_bytes"], 4)
            self.assertIsNone(facts["left_behind"])
            self.assertRegex(text(result), r"(?s)out.*\[stderr\].*err")

    async def test_an_exit_code_is_a_result(self):
        async with self.connect() as client:
            result = await client.call_tool("bash", {"command": "echo partly; exit 7"})
            self.assertFalse(result.is_error)
            self.assertEqual(result.structured_content["exit_code"], 7)
            self.assertRegex(text(result), r"(?s)partly.*\[exit code: 7\]$")

    async def test_a_signal_is_a_result(self):
        async with self.connect() as client:
            result = await client.call_tool("bash", {"command": "kill -KILL $$"})
            self.assertFalse(result.is_error)
            facts = result.structured_content
            self.assertEqual((facts["exit_code"], facts["signal"], facts["cause"]), (None, "SIGKILL", "ended"))
            self.assertRegex(text(result), r"\[killed by signal: SIGKILL\]$")

    async def test_a_timeout_keeps_what_was_printed_and_ends_the_tree(self):
        mark = processes.new_mark()
        command = marking(mark, f"echo CRITICAL; echo warn >&2; sleep {FOREVER} | cat")
        async with self.connect() as client:
            result = await client.call_tool("bash", {"command": command, "timeout_ms": 1000})
            facts = result.structured_content
            self.assertFalse(result.is_error)
            self.assertEqual((facts["cause"], facts["timeout_ms"]), ("timed_out", 1000))
            self.assertNotEqual(facts["exit_code"], 0)
            for expected in ("CRITICAL", "warn", "[timed out after 1000ms]"):
                self.assertIn(expected, text(result))
            self.assertEqual(processes.marked(mark), {})

    async def test_a_timeout_beyond_the_maximum_is_told_as_the_maximum(self):
        async with self.connect() as client:
            most = (await answered(client, "process_info"))["max_timeout_ms"]
            facts = await answered(client, "bash", command=":", timeout_ms=most + 1)
            self.assertEqual(facts["timeout_ms"], most)

    async def test_what_a_command_leaves_behind_does_not_hold_it_up_and_is_named(self):
        leaving = {
            "a quiet holder": f"sleep {FOREVER} & echo done",
            "a noisy holder": "(while :; do echo tick; sleep 0.05; done) & echo done",
            "one without hang-ups": f"nohup sleep {FOREVER} & echo done",
        }
        for what, script in leaving.items():
            with self.subTest(what):
                mark = processes.new_mark()
                async with self.connect() as client:
                    result = await client.call_tool(
                        "bash", {"command": marking(mark, script), "timeout_ms": 60_000}
                    )
                    facts = result.structured_content
                    self.assertEqual((facts["exit_code"], facts["cause"]), (0, "ended"))
                    self.assertIn("done", text(result))
                    left = facts["left_behind"]
                    self.assertTrue(left["members"])
                    for member in left["members"]:
                        self.assertIn(str(member["pid"]), text(result))
                    if left["fate"] == "job":
                        self.assertIn(left["job_id"], text(result))
                        jobs = (await answered(client, "job_list"))["jobs"]
                        self.assertIn(left["job_id"], [job["id"] for job in jobs])
                        await answered(client, "job_kill", job_id=left["job_id"])
                    await processes.until_gone(mark)

    async def test_a_directory_of_its_own(self):
        (self.directory / "below").mkdir()
        async with self.connect() as client:
            facts = await answered(client, "bash", command="pwd", workdir="below")
            self.assertEqual(facts["stdout"]["text"].strip(), str((self.directory / "below").resolve()))

    async def test_a_directory_that_is_missing_is_told_from_a_program_that_is(self):
        async with self.connect() as client:
            error = await refused(client, "bash", command="echo hi", workdir="no-such-directory")
            self.assertIn("no-such-directory", error)
            (self.directory / "file").touch()
            self.assertIn("file", await refused(client, "bash", command="echo hi", workdir="file"))
            facts = await answered(client, "bash", command="no-such-program")
            self.assertEqual(facts["exit_code"], 127)

    async def test_wrong_arguments_are_named_in_the_error(self):
        wrong = {
            "command": {},
            "timeout_ms": {"command": ":", "timeout_ms": 0},
            "time_out": {"command": ":", "time_out": 5},
            "workdir": {"command": ":", "workdir": 5},
        }
        async with self.connect() as client:
            for name, arguments in wrong.items():
                with self.subTest(name):
                    self.assertIn(name, await refused(client, "bash", **arguments))
            self.assertIn("command", await refused(client, "bash", command=""))

    async def test_nothing_secret_of_the_host_is_in_a_command(self):
        async with self.connect() as client:
            for background in (False, True):
                with self.subTest(background=background):
                    facts = await answered(
                        client, "bash", command="env; tr '\\0' '\\n' </proc/$$/environ", run_in_background=background
                    )
                    if background:
                        seen = await self.whole_output(client, facts["job_id"])
                    else:
                        seen = facts["stdout"]["text"]
                    self.assertIn("PATH=", seen)
                    self.assertIn("HOME=", seen)
                    for name, value in SECRETS.items():
                        self.assertNotIn(name, seen)
                        self.assertNotIn(value, seen)

    async def whole_output(self, client, job_id: str) -> str:
        seen = ""
        while True:
            facts = await answered(client, "job_output", job_id=job_id, wait_ms=10_000)
            seen += facts["stdout"]["text"]
            if facts["job"]["status"] == "completed" and not facts["stdout"]["text"]:
                return seen

    async def test_a_command_has_no_terminal_and_nothing_on_its_input(self):
        script = "cat; tty; (read -r line </dev/tty) 2>/dev/null; echo rc=$?"
        async with self.connect() as client:
            facts = await answered(client, "bash", command=script, timeout_ms=60_000)
            self.assertEqual(facts["cause"], "ended")
            self.assertIn("not a tty", facts["stdout"]["text"])
            self.assertIn("rc=1", facts["stdout"]["text"])

    async def test_progress_of_a_long_command_is_told_while_it_runs(self):
        told = []
        heard = asyncio.Event()
        go_on = self.directory / "go-on"

        async def progress(progress: float, _total: float | None, message: str | None) -> None:
            told.append((progress, message))
            if "halfway" in (message or ""):
                heard.set()

        async with self.connect() as client, anyio.create_task_group() as tasks:

            async def let_it_end() -> None:
                await asyncio.wait_for(heard.wait(), processes.BOUND)
                go_on.touch()

            tasks.start_soon(let_it_end)
            result = await client.call_tool(
                "bash",
                {"command": f"echo halfway; until [ -e {go_on} ]; do sleep 0.05; done", "timeout_ms": 60_000},
                progress_callback=progress,
            )
        self.assertEqual(result.structured_content["cause"], "ended")
        amounts = [amount for amount, _ in told]
        self.assertEqual(amounts, sorted(set(amounts)), "progress increases with each notification")

    async def test_a_call_that_is_cancelled_leaves_nobody(self):
        mark = processes.new_mark()
        async with self.connect() as client:
            async with anyio.create_task_group() as tasks:
                command = marking(mark, f"sleep {FOREVER} | cat")
                tasks.start_soon(client.call_tool, "bash", {"command": command})
                await processes.until_present(mark, 3)
                tasks.cancel_scope.cancel()
            await processes.until_gone(mark)
            facts = await answered(client, "bash", command="echo and on")
            self.assertEqual(facts["stdout"]["text"].strip(), "and on")

    async def test_calls_at_once_do_not_mix(self):
        async with self.connect() as client:
            answers: dict[int, str] = {}

            async def call(number: int) -> None:
                facts = await answered(client, "bash", command=f"for i in 1 2 3; do echo {number}; done")
                answers[number] = facts["stdout"]["text"].strip()

            async with anyio.create_task_group() as tasks:
                for number in range(16):
                    tasks.start_soon(call, number)
            self.assertEqual(answers, {number: "\n".join([str(number)] * 3) for number in range(16)})


class BashOverStdio(Bash, Stdio):
    pass


class BashOverStdioWithHandshake(Bash, StdioWithHandshake):
    pass


class BashOverHttp(Bash, Http):
    pass
