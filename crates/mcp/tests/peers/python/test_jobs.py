"""Commands in the background, and whose they are."""

import asyncio
import re

import anyio
from mcp import MCPError

import processes
from results import answered, refused, text
from server import Http, HttpWithHandshake, Stdio, StdioWithHandshake, marking

FOREVER = 300


class Jobs:
    async def start(self, client, command: str) -> str:
        result = await client.call_tool("bash", {"command": command, "run_in_background": True})
        facts = result.structured_content
        self.assertEqual(facts["kind"], "background")
        self.assertEqual(text(result), f"started background job {facts['job_id']}")
        return facts["job_id"]

    async def whole(self, client, job_id: str) -> str:
        """The job's standard output until its end, read as it comes; each piece begins where the last one ended."""
        seen, offset = "", 0
        while True:
            facts = await answered(client, "job_output", job_id=job_id, wait_ms=10_000)
            delta = facts["stdout"]
            self.assertEqual(delta["offset"], offset)
            self.assertEqual(delta["lost_bytes"], 0)
            seen, offset = seen + delta["text"], delta["next_offset"]
            if facts["job"]["status"] not in ("running", "stopping") and offset == delta["total_bytes"]:
                return seen

    async def test_a_job_is_read_to_its_last_line(self):
        async with self.connect() as client:
            jobs = [
                await self.start(client, f"sleep 0.{number}; seq 1 2000; echo LAST") for number in range(8)
            ]
            for job in jobs:
                self.assertEqual(
                    await self.whole(client, job), "".join(f"{n}\n" for n in range(1, 2001)) + "LAST\n"
                )

    async def test_the_end_of_a_job_is_told_with_its_exit_code(self):
        async with self.connect() as client:
            job = await self.start(client, "echo err >&2; exit 3")
            await self.whole(client, job)
            result = await client.call_tool("job_output", {"job_id": job})
            facts = result.structured_content["job"]
            self.assertEqual((facts["status"], facts["detail"]), ("completed", "exit code: 3"))
            self.assertEqual(text(result).splitlines()[-1], f"[job {job}: completed, exit code: 3]")

    async def test_a_job_that_is_killed_leaves_nobody(self):
        mark = processes.new_mark()
        async with self.connect() as client:
            job = await self.start(client, marking(mark, f"sleep {FOREVER} | cat"))
            await processes.until_present(mark, 3)
            facts = await answered(client, "job_kill", job_id=job)
            self.assertEqual(facts["result"], "stopped")
            self.assertEqual(facts["job"]["status"], "killed")
            self.assertEqual(processes.marked(mark), {})
            again = await answered(client, "job_kill", job_id=job)
            self.assertEqual(again["result"], "already_finished")

    async def test_jobs_are_listed_in_their_order_with_what_they_do(self):
        async with self.connect() as client:
            self.assertEqual((await answered(client, "job_list"))["jobs"], [])
            first = await self.start(client, "exit 0")
            second = await self.start(client, f"sleep {FOREVER}")
            await self.whole(client, first)
            jobs = (await answered(client, "job_list"))["jobs"]
            self.assertEqual([job["id"] for job in jobs], [first, second])
            self.assertEqual([job["status"] for job in jobs], ["completed", "running"])
            self.assertEqual((await answered(client, "process_info"))["live_jobs"], 1)
            info = await answered(client, "process_info", job_id=second)
            self.assertEqual(info["job"]["id"], second)
            self.assertIn(info["pid"], [member["pid"] for member in info["members"]])

    async def test_a_job_that_is_not_there_is_named_with_those_that_are(self):
        async with self.connect() as client:
            job = await self.start(client, f"sleep {FOREVER}")
            for tool in ("job_output", "job_kill", "process_info"):
                with self.subTest(tool):
                    error = await refused(client, tool, job_id="bash-99")
                    self.assertIn("bash-99", error)
                    self.assertIn(job, error)

    async def test_a_session_that_ends_ends_its_jobs(self):
        mark = processes.new_mark()
        async with self.connect() as client:
            stubborn = f"trap '' TERM; while :; do sleep 1; done & sleep {FOREVER}"
            await self.start(client, marking(mark, stubborn))
            await processes.until_present(mark, 3)
        await processes.until_gone(mark)

    async def test_a_session_that_ends_ends_its_commands(self):
        mark = processes.new_mark()
        async with anyio.create_task_group() as tasks:
            async with self.connect() as client:

                async def call() -> None:
                    # The session is over before the command is.
                    with self.assertRaises(MCPError):
                        await client.call_tool("bash", {"command": marking(mark, f"sleep {FOREVER}")})

                tasks.start_soon(call)
                await processes.until_present(mark)
            await processes.until_gone(mark)

    async def test_sessions_see_nothing_of_each_others_jobs(self):
        mark = processes.new_mark()
        async with self.connect() as owner, self.connect() as other:
            job = await self.start(owner, marking(mark, f"echo private; sleep {FOREVER}"))
            await processes.until_present(mark)
            self.assertEqual((await answered(other, "job_list"))["jobs"], [])
            self.assertEqual((await answered(other, "process_info"))["live_jobs"], 0)
            for tool in ("job_output", "job_kill", "process_info"):
                with self.subTest(tool):
                    foreign = await refused(other, tool, job_id=job)
                    unknown = await refused(other, tool, job_id="bash-98765")
                    self.assertEqual(foreign.replace(job, "ID"), unknown.replace("bash-98765", "ID"))
            self.assertTrue(processes.marked(mark))
            facts = await answered(owner, "job_output", job_id=job, wait_ms=10_000)
            self.assertEqual(facts["stdout"]["text"], "private\n")

    async def test_sessions_see_nothing_of_each_others_outputs(self):
        async with self.connect() as owner, self.connect() as other:
            facts = await answered(owner, "bash", command="seq 100000")
            uri = facts["stdout"]["uri"]
            self.assertEqual((await other.list_resources()).resources, [])
            with self.assertRaises(Exception) as refusal:
                await other.read_resource(uri)
            self.assertIn(re.search(r"run-\d+", uri)[0], str(refusal.exception))


class JobsThatAreTold(Jobs):
    """Of a connection on which the server may speak without being asked."""

    async def test_the_end_of_a_job_that_nobody_looked_at_is_told(self):
        told = asyncio.Queue()

        async def log(message) -> None:
            await told.put(message)

        go_on = self.directory / "go-on"
        async with self.connect(logging_callback=log) as client:
            job = await self.start(client, f"until [ -e {go_on} ]; do sleep 0.05; done; exit 4")
            go_on.touch()
            message = await asyncio.wait_for(told.get(), processes.BOUND)
            self.assertEqual(message.level, "info")
            self.assertIn(job, str(message.data))
            self.assertIn("exit code: 4", str(message.data))
            self.assertTrue(told.empty())


class JobsOverStdio(Jobs, Stdio):
    pass


class JobsOverStdioWithHandshake(JobsThatAreTold, StdioWithHandshake):
    pass


class JobsOverHttp(Jobs, Http):
    pass


class JobsOverHttpWithHandshake(JobsThatAreTold, HttpWithHandshake):
    pass
