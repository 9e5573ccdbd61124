import { imageSizeOf, imageTypeOf } from "../image-header.ts";
import type { ToolOutcome } from "../tool.ts";
import { failed } from "./builtin-tool.ts";
import type { LoadedFile } from "./open-file.ts";
import type { ReadRequest } from "./read-text.ts";

/** An image that a provider rejects would spoil the whole conversation, so it is measured before it is sent. */
export function readImage(request: ReadRequest, { bytes, digest, stats }: LoadedFile): ToolOutcome {
  const { path, realPath, context } = request;
  const type = imageTypeOf(bytes);
  const size = type === undefined ? undefined : imageSizeOf(bytes, type);
  if (type === undefined || size === undefined) {
    return failed(`${path} begins like an image, but its header is damaged; it cannot be shown.`);
  }
  if (bytes.length > maxImageBytes) {
    return failed(
      `${path} has ${bytes.length} bytes; images of at most ${maxImageBytes} bytes can be shown. Make a smaller copy with a shell command and read that.`,
    );
  }
  if (size.width > maxImageSide || size.height > maxImageSide) {
    return failed(
      `${path} is ${size.width} × ${size.height} pixels; at most ${maxImageSide} on a side can be shown. Make a smaller copy with a shell command and read that.`,
    );
  }
  context.files.noteSeen(realPath, { digest, mtimeMs: stats.mtimeMs, partial: false });
  return {
    content: [
      { type: "text", text: `${path} (${type}, ${size.width} × ${size.height} pixels)` },
      { type: "image", source: { type: "base64", media_type: type, data: bytes.toString("base64") } },
    ],
    data: { type: "image", file: { filePath: path, type, originalSize: bytes.length, dimensions: size } },
  };
}

/** Five megabytes are allowed once it is written in base64, which is a third longer. */
const maxImageBytes = 3_750_000;
const maxImageSide = 8000;
