import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { refuseHttp } from "./listen-http.ts";

const server = { port: 4321, token: "0123456789abcdef" };
const good = { host: "127.0.0.1:4321", authorization: `Bearer ${server.token}` };

describe("[MCP-3] who is served over HTTP", () => {
  test.each([
    [{}, undefined],
    [{ host: "localhost:4321" }, undefined],
    [{ host: "LOCALHOST:4321" }, undefined],
    [{ origin: "http://127.0.0.1:4321" }, undefined],
    [{ authorization: `bearer ${server.token}` }, undefined],
    [{ host: undefined }, 403],
    [{ host: "127.0.0.1" }, 403],
    [{ host: "127.0.0.1:4321.evil.test" }, 403],
    [{ host: "evil.test:4321" }, 403],
    [{ host: "localhost.:4321" }, 403],
    [{ origin: "http://localhost:3000" }, 403],
    [{ origin: "https://127.0.0.1:4321" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "" }, 403],
    [{ authorization: undefined }, 401],
    [{ authorization: server.token }, 401],
    [{ authorization: "Bearer " }, 401],
    [{ authorization: `Bearer ${server.token} ` }, 401],
    [{ authorization: `Bearer ${server.token}0` }, 401],
    [{ authorization: `Bearer ${server.token.slice(1)}` }, 401],
  ])("%j", (headers, status) => {
    expect(refuseHttp({ ...good, ...headers }, server)?.status).toBe(status);
  });

  test("no other header value is let through", () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom("host", "authorization"), (value, name) => {
        fc.pre(value.toLowerCase() !== "localhost:4321" && value !== good[name as "host"]);
        expect(refuseHttp({ ...good, [name]: value }, server)).toBeDefined();
      }),
    );
  });
});
