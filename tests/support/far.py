"""A line between browser and server that can be made long and thin: what a student on a shared hub has."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Line:
    """Passes bytes on between a port of its own and a server on this machine.

    Attributes
    ----------
    address : tuple of str and int; where it listens
    delay : float; seconds that each way takes
    rate : float; bytes a second towards the browser at most; infinite at first
    down, up : int; bytes that have gone to the browser and from it
    """

    def __init__(self, port: int):
        self.delay, self.rate, self.down, self.up = 0.0, float("inf"), 0, 0
        self._server_port = port
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._free = 0.0  # when the line to the browser has sent what it was given

    def be(self, delay: float, rate: float) -> None:
        """Have a delay and a rate from now on."""
        self.delay, self.rate = delay, rate

    def run(self) -> None:
        """Listen until `stop` is called; for a thread of its own."""
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.address = self._server.sockets[0].getsockname()
        self._started.set()
        self._loop.run_forever()
        self._server.close()
        for task in (tasks := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            there, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
            await asyncio.gather(self._pass(reader, to_server, down=False), self._pass(there, writer, down=True))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, down: bool) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(due - self._loop.time())
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        delivering = self._loop.create_task(deliver())
        with suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(1 << 14):
                now = self._loop.time()
                if down:
                    self.down += len(data)
                    self._free = max(now, self._free) + len(data) / self.rate
                else:
                    self.up += len(data)
                await queue.put(((self._free if down else now) + self.delay, data))
        await queue.put((self._loop.time() + self.delay, b""))
        with suppress(OSError, asyncio.CancelledError):
            await delivering


@contextmanager
def line(port: int) -> Iterator[Line]:
    """Yield a line to a server's port."""
    made = Line(port)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    made._started.wait()
    try:
        yield made
    finally:
        made.stop()
        thread.join(5)
