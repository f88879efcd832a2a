"""The ASGI application: body limits, waiting and streams around Django."""

from config.errors import BodyTooLarge, problem_response
from config.front.bodies import BodyOverLimit, ClientGone, read_body
from config.front.bridge import Bridge
from config.front.changes import Changes
from config.front.holding import STREAM, WAIT, Held
from config.front.http import PRIVATE, Receive, Request, Response, Scope, Send, send_response

UNAUTHENTICATED = 401


class Front:
    """Takes HTTP requests, and lets everybody who waits go when the process is to end."""

    def __init__(self, bridge: Bridge, changes: Changes) -> None:
        self.bridge = bridge
        self.changes = changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.changes.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(k, v) for k, v in scope["headers"] if not k.startswith(PRIVATE)]
        request = Request(scope, headers)
        try:
            request = Request(scope, headers, await read_body(scope, headers, receive))
            response: Response | None = await self.bridge(request)
        except ClientGone:
            return
        except BodyOverLimit as refusal:
            response = await self._refuse(request, refusal)
        if response is not None and request.method == "GET":
            held = Held(self.bridge, self.changes, request)
            if STREAM in response.private:
                await held.stream(response, receive, send)
                return
            if WAIT in response.private:
                response = await held.until_news(response, receive)
        if response is not None:
            await send_response(send, response, body=request.method != "HEAD")

    async def _refuse(self, request: Request, refusal: BodyOverLimit) -> Response:
        """Answer 413, but 401 to whom Django does not know: it is asked by a harmless OPTIONS."""
        question = Request({**request.scope, "method": "OPTIONS"}, request.headers)
        answer = await self.bridge(question)
        if answer.status == UNAUTHENTICATED:
            return answer
        told = problem_response(BodyTooLarge(str(refusal)))
        raw = [(k.lower().encode(), v.encode()) for k, v in told.items()]
        return Response.of(told.status_code, raw, told.content)
