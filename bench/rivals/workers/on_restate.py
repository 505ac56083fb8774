"""The ticket as a Restate workflow: journalled steps, its durable sleep, its promise for the person. Retries every 50 ms."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bench.rivals.outside import HOLD, Outside

outside = Outside(Path(sys.argv[1]))
ticket = restate.Workflow(
    "ticket",
    invocation_retry_policy=restate.InvocationRetryPolicy(
        initial_interval=timedelta(milliseconds=50), exponentiation_factor=1.0
    ),
)


@ticket.main()
async def work(ctx: restate.WorkflowContext) -> None:
    key = ctx.key()
    outside.begun(key)  # measures
    await ctx.run_typed("look up", outside.look_up, ticket=key)
    outside.done(key, "lookup")  # measures
    outside.holding(key)  # measures
    await ctx.sleep(timedelta(seconds=HOLD))
    outside.done(key, "hold")  # measures
    await ctx.run_typed("ask", outside.ask, ticket=key)
    outside.done(key, "ask")  # measures
    await ctx.promise("answer").value()
    outside.done(key, "approve")  # measures
    await ctx.run_typed("refund", outside.pay, ticket=key, key=f"{key}:refund")
    outside.done(key, "refund")  # measures
    await ctx.run_typed("close", outside.close, ticket=key)


@ticket.handler()
async def answer(ctx: restate.WorkflowSharedContext, ok: bool) -> None:
    await ctx.promise("answer").resolve(ok)


async def main() -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[2]}"]
    outside.up()  # measures
    await serve(restate.app([ticket]), config)


if __name__ == "__main__":
    asyncio.run(main())
