import { describe, expect, it } from "vitest";
import { socketFilter } from "./socket-filter.ts";

const [allowed, refused, absent] = ["allowed", "error 1", "error 38"];
const audit = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003 };

/** What a kernel would make of a system call, instruction by instruction. */
function judge(
  filter: Uint8Array,
  { machine, call, values = [] }: { machine: number; call: number; values?: readonly number[] },
): string {
  const bytes = new DataView(filter.buffer, filter.byteOffset, filter.byteLength);
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call, true);
  data.setUint32(4, machine, true);
  for (const [at, value] of values.entries()) data.setUint32(16 + at * 8, value, true);
  let held = 0;
  for (let at = 0; at < filter.length / 8; at += 1) {
    const code = bytes.getUint16(at * 8, true);
    const value = bytes.getUint32(at * 8 + 4, true);
    if (code === 0x20) held = data.getUint32(value, true);
    else if (code === 0x54) held &= value;
    else if (code === 0x06) return value === 0x7fff0000 ? allowed : `error ${value & 0xffff}`;
    else at += bytes.getUint8(at * 8 + ((code === 0x15 ? held === value : held >= value) ? 2 : 3));
  }
  throw new Error("The filter does not end.");
}

describe("the filter of system calls for commands that only read [PRM-9]", () => {
  const numbers = { x64: { socket: 41, pair: 53, read: 0 }, arm64: { socket: 198, pair: 199, read: 63 } };

  it.each(["x64", "arm64"] as const)("on %s lets no socket through that has a path", (architecture) => {
    const filter = socketFilter(architecture) ?? new Uint8Array();
    const { socket, pair, read } = numbers[architecture];
    const on = (call: number, ...values: readonly number[]) =>
      judge(filter, { machine: audit[architecture], call, values });
    expect(on(read, 0)).toBe(allowed);
    const families = Object.fromEntries(
      [1, 2, 10, 16, 17, 40].map((family) => [family, on(socket, family, 1)]),
    );
    expect(families).toEqual({ 1: refused, 2: allowed, 10: allowed, 16: allowed, 17: refused, 40: refused });
    // With the flags for close-on-exec and not to block; a pair of datagram sockets can send to a path.
    expect([1, 1 | 0x80800, 2, 2 | 0x80000, 5].map((type) => on(pair, 1, type))).toEqual([
      allowed,
      allowed,
      refused,
      refused,
      refused,
    ]);
    expect(on(425)).toBe(absent);
    expect(on(0x40000000 + socket, 1)).toBe(refused);
    expect(judge(filter, { machine: audit.i386, call: 102, values: [1] })).toBe(refused);
  });

  it("is unknown for other machines", () => {
    expect(socketFilter("riscv64")).toBeUndefined();
  });
});
