"""Checks the local stack with a client that is not ours: `realtime` from PyPI.

usage: interop.py READY_JSON LISTEN_OUTPUT

Signs a user in, joins a private channel with that user's token, makes the server commit changes and broadcast by hand,
and expects every broadcast, the same number that `kizuna-doorbell listen` saw on the same topic. A private channel must
stay shut to a key that nobody signed in with.
"""

import asyncio
import json
import sys
import urllib.request
import uuid

from realtime import AsyncRealtimeClient, RealtimeSubscribeStates

TOPIC = "kizunasync:todos"
CHANGES = 5
DEADLINE = 20


class Stack:
    def __init__(self, ready):
        self.url = ready["url"]
        self.key = ready["publishableKey"]

    def post(self, path, body, token=None, profile=None):
        headers = {"Content-Type": "application/json", "apikey": self.key, "Authorization": f"Bearer {token or self.key}"}
        if profile:
            headers["Content-Profile"] = profile
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def sign_in(self, email, password):
        return self.post("/auth/v1/token?grant_type=password", {"email": email, "password": password})

    def insert(self, token, owner, number):
        row = str(uuid.uuid4())
        mutation = {
            "mutation_id": str(uuid.uuid4()),
            "table": "todos",
            "pk": row,
            "op": "insert",
            "columns": {"owner_id": owner, "title": f"number {number}"},
        }
        answer = self.post(
            "/rest/v1/rpc/push",
            {"batch": {"atomic": False, "mutations": [mutation]}, "last_mutation_id": None, "schema_version": 1},
            token,
            "kizunasync",
        )
        assert answer["verdicts"][0]["verdict"] == "applied", answer

    def broadcast(self, token):
        message = {"topic": TOPIC, "event": "changed", "payload": {"t": "todos"}, "private": True}
        self.post("/realtime/v1/api/broadcast", {"messages": [message]}, token)


async def until(condition, what):
    for _ in range(DEADLINE * 50):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise SystemExit(f"interop: {what} did not happen within {DEADLINE} s")


def rings(path):
    with open(path, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines if line.endswith("\n")]
    return sum(1 for event in events if event.get("event") == "ring" and event.get("cause") == "broadcast")


async def subscribe(client, received):
    """The first state the subscription ends in."""
    channel = client.channel(TOPIC, {"config": {"private": True, "broadcast": {"ack": False, "self": False}, "presence": {"key": "", "enabled": False}}})
    channel.on_broadcast("changed", received.append)
    state = asyncio.get_running_loop().create_future()
    await channel.subscribe(lambda now, error: state.done() or state.set_result(now))
    return await asyncio.wait_for(state, DEADLINE)


async def main(ready, listen_output):
    stack = Stack(ready)
    user = ready["users"][0]
    session = stack.sign_in(user["email"], "pw")
    token = session["access_token"]
    endpoint = stack.url.replace("http", "ws", 1) + "/realtime/v1"

    received = []
    client = AsyncRealtimeClient(endpoint, stack.key, auto_reconnect=False)
    await client.connect()
    await client.set_auth(token)
    state = await subscribe(client, received)
    assert state == RealtimeSubscribeStates.SUBSCRIBED, f"joining with a signed-in token gave {state}"

    before = rings(listen_output)
    for number in range(CHANGES):
        stack.insert(token, user["id"], number)
    await until(lambda: len(received) == CHANGES, "one broadcast for each change")
    assert all(item["payload"]["t"] == "todos" for item in received), received
    # Whether this user may ring by hand is the server's policy. What matters: both clients hear the same.
    stack.broadcast(token)
    await until(lambda: rings(listen_output) - before == len(received), "the same count in both clients")
    await client.close()

    stranger = AsyncRealtimeClient(endpoint, stack.key, auto_reconnect=False)
    await stranger.connect()
    state = await subscribe(stranger, [])
    assert state != RealtimeSubscribeStates.SUBSCRIBED, "a private channel opened to the publishable key"
    await stranger.close()
    print(f"interop: the Python client saw {len(received)} broadcasts, as listen did")


with open(sys.argv[1], encoding="utf-8") as file:
    asyncio.run(main(json.loads(file.readline()), sys.argv[2]))
