import { open } from "node:fs/promises";

const defaultLimit = 30_000;

/** What an earlier process kept of a command's output: all of it, or its beginning and end; empty where nothing is kept. */
export async function loadCommandOutput(file: string | undefined, limit = defaultLimit): Promise<string> {
  if (file === undefined) return "";
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return "";
  try {
    const { size } = await handle.stat();
    const read = async (length: number, position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
      return buffer.toString("utf8", 0, bytesRead);
    };
    if (size <= limit) return await read(size, 0);
    const head = Math.ceil(limit * 0.4);
    const tail = limit - head;
    const [start, end] = [await read(head, 0), await read(tail, size - tail)];
    return `${start}\n\n[… ${size - limit} bytes left out; all of it is in ${file} …]\n\n${end}`;
  } catch {
    return "";
  } finally {
    await handle.close();
  }
}
