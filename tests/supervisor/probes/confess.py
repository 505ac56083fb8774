"""A probe that says what it is made of."""

import os
import signal
import sys
import threading

from desk.runtime.process import Process


async def main(me: Process) -> None:
    await me.event(
        "confession",
        modules=sorted({name.partition(".")[0] for name in sys.modules}),
        interrupt=signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        session=os.getsid(0),
        threads=threading.active_count(),
    )
    print("on stdout")
    print("on stderr", file=sys.stderr)
    await me.up()
