"""Who is alive, by what /proc says.

A process is found by a variable in its environment, which it keeps whatever session, group or parent it moves to.
"""

import asyncio
import os
import time
import uuid

# Every wait below ends; a bound that is reached is a failure, so it is far beyond what a busy machine takes.
BOUND = 30.0

# There is no event for the end of somebody else's process that works for all of them.
STEP = 0.02


def new_mark() -> str:
    """A value that no other process on the machine has in its environment."""
    return uuid.uuid4().hex


def marked(mark: str) -> dict[int, str]:
    """The living processes with the mark in their environment, by pid, with their command lines."""
    wanted = mark.encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                # A zombie's is empty.
                if wanted not in file.read():
                    continue
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                found[int(entry)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


async def until_present(mark: str, count: int = 1) -> dict[int, str]:
    """Waits until so many processes have the mark."""
    deadline = time.monotonic() + BOUND
    while len(found := marked(mark)) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(found)} of {count} processes have come up: {found}")
        await asyncio.sleep(STEP)
    return found


async def until_gone(mark: str) -> None:
    """Waits until no process has the mark."""
    deadline = time.monotonic() + BOUND
    while found := marked(mark):
        if time.monotonic() > deadline:
            raise AssertionError(f"still alive: {found}")
        await asyncio.sleep(STEP)


def peak_memory(pid: int) -> int:
    """The most resident memory that the process has had so far, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/{pid}/status names no peak")
