"""An OIDC provider of one client: a token endpoint (client credentials, RFC 6749 4.4) that gives
out signed tokens (RS256), and the keys to check them with (JWKS)."""

import base64
import http.server
import json
import threading
import time
import urllib.parse

from joserfc import jwt
from joserfc.jwk import RSAKey


class TokenProvider:
    CLIENT, AUDIENCE = "billing", "kafka"

    def __init__(self, test, secret: str, life: int):
        """Tokens are good for `life` seconds."""
        self.secret, self._life, self._issued = secret, life, 0
        self._key = RSAKey.generate_key(2048, {"kid": "k1", "alg": "RS256", "use": "sig"})
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer(200, {"keys": [provider._key.as_dict(private=False)]})

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                asked = dict(urllib.parse.parse_qsl(body))
                wanted = base64.b64encode(f"{provider.CLIENT}:{provider.secret}".encode()).decode()
                if self.path != "/token" or asked.get("grant_type") != "client_credentials":
                    self._answer(400, {"error": "invalid_request"})
                elif self.headers.get("authorization") != f"Basic {wanted}":
                    self._answer(401, {"error": "invalid_client"})
                else:
                    self._answer(200, provider._token(asked.get("scope", "")))

            def _answer(self, status: int, value: dict):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        address = f"http://127.0.0.1:{server.server_port}"
        self.token_url, self.jwks_url = f"{address}/token", f"{address}/jwks"

    @property
    def issued(self) -> int:
        """How many tokens were given out."""
        return self._issued

    def _token(self, scope: str) -> dict:
        self._issued += 1
        now = int(time.time())
        claims = {"iss": "here", "sub": self.CLIENT, "aud": self.AUDIENCE, "iat": now,
                  "exp": now + self._life, "scope": scope}  # fmt: skip
        token = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self._key)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._life}
