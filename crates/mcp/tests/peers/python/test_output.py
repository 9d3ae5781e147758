"""Output that is larger than an answer."""

import base64
import hashlib

import processes
from results import answered, links
from server import Http, Stdio

# How much the server may grow by, whatever is printed.
GROWTH = 64 << 20


class Output:
    async def pages(self, client, uri: str):
        """Every page of the resource, from its beginning."""
        offset = 0
        while True:
            [page] = (await client.read_resource(f"{uri}?offset={offset}")).contents
            self.assertEqual(page.meta["offset"], offset)
            content = page.text.encode() if hasattr(page, "text") else base64.b64decode(page.blob)
            self.assertEqual(page.meta["next_offset"], offset + len(content))
            yield content
            offset = page.meta["next_offset"]
            if offset == page.meta["total_bytes"]:
                self.assertTrue(page.meta["complete"])
                return
            self.assertTrue(content, "a page brings its reader on")

    async def whole(self, client, uri: str) -> bytes:
        return b"".join([page async for page in self.pages(client, uri)])

    async def test_pages_of_a_resource_are_the_whole_output(self):
        printed = "".join(f"line {number} – of many\n" for number in range(1, 100_001)).encode()
        async with self.connect() as client:
            result = await client.call_tool(
                "bash", {"command": "seq -f 'line %.0f – of many' 100000"}
            )
            stdout = result.structured_content["stdout"]
            self.assertEqual(stdout["total_bytes"], len(printed))
            self.assertGreater(stdout["omitted_bytes"], 0)
            self.assertIn("line 1 ", stdout["text"])
            self.assertIn("line 100000 ", stdout["text"])
            self.assertIn(stdout["uri"], links(result))
            listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
            self.assertEqual(listed[stdout["uri"]].size, len(printed))
            whole = await self.whole(client, stdout["uri"])
            self.assertEqual(hashlib.sha256(whole).digest(), hashlib.sha256(printed).digest())

    async def test_pages_of_a_resource_that_is_no_text_are_the_bytes(self):
        async with self.connect() as client:
            facts = await answered(
                client, "bash", command="head -c 300000 /dev/urandom | tee random; sha256sum <random >&2"
            )
            whole = await self.whole(client, facts["stdout"]["uri"])
            self.assertEqual(hashlib.sha256(whole).hexdigest(), facts["stderr"]["text"].split()[0])

    async def test_a_page_has_the_size_that_was_asked_for(self):
        async with self.connect() as client:
            facts = await answered(client, "bash", command="seq 1000000")
            uri = facts["stdout"]["uri"]
            [page] = (await client.read_resource(f"{uri}?offset=0&length=6")).contents
            self.assertEqual(page.text, "1\n2\n3\n")
            [page] = (await client.read_resource(f"{uri}?offset=2&length=2")).contents
            self.assertEqual(page.text, "2\n")

    async def test_a_large_page_of_bytes_that_are_no_text_arrives(self):
        async with self.connect() as client:
            # Larger on its way than here, by a third. Over HTTP the client takes events of at most a mebibyte.
            facts = await answered(client, "bash", command="head -c 3000000 /dev/zero | tr '\\0' '\\377'")
            uri = facts["stdout"]["uri"]
            [page] = (await client.read_resource(f"{uri}?offset=0&length={1 << 19}")).contents
            self.assertEqual(base64.b64decode(page.blob), b"\xff" * (1 << 19))

    async def test_two_gigabytes_are_counted_and_not_kept(self):
        async with self.connect() as client:
            await answered(client, "bash", command=":")
            pid = await self.server_pid()
            before = processes.peak_memory(pid)
            facts = await answered(
                client, "bash", command="yes | head -c 2000000000", timeout_ms=120_000
            )
            self.assertEqual((facts["exit_code"], facts["cause"]), (0, "ended"))
            stdout = facts["stdout"]
            self.assertEqual(stdout["total_bytes"], 2_000_000_000)
            self.assertGreater(stdout["omitted_bytes"], 1_999_000_000)
            self.assertTrue(stdout["text"].startswith("y\n"))
            self.assertLess(processes.peak_memory(pid) - before, GROWTH)

    async def test_one_line_of_many_megabytes_is_clipped_with_its_length(self):
        async with self.connect() as client:
            facts = await answered(client, "bash", command="head -c 20000000 /dev/zero | tr '\\0' x")
            stdout = facts["stdout"]
            self.assertEqual(stdout["total_bytes"], 20_000_000)
            self.assertLess(len(stdout["text"]), 200_000)
            self.assertEqual(await self.whole(client, stdout["uri"]), b"x" * 20_000_000)


class OutputOverStdio(Output, Stdio):
    pass


class OutputOverHttp(Output, Http):
    pass
