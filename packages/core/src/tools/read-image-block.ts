import type { ImageBlock } from "../conversation/message.ts";
import { type ImageSize, type ImageType, imageSizeOf, imageTypeOf } from "./image-size.ts";

export type ImageReading =
  | {
      readonly type: "image";
      readonly block: ImageBlock;
      readonly mediaType: ImageType;
      readonly size: ImageSize;
    }
  /** `why` is the rest of a sentence that begins with the name of the image. */
  | { readonly type: "unusable"; readonly why: string; readonly isTooLarge?: true };

/** Five megabytes are allowed once it is written in base64, which is a third longer. */
export const maxImageBytes = 3_750_000;
const maxImageSide = 8000;

/** An image that a provider rejects would spoil the whole conversation, so it is measured before it is sent. */
export function readImageBlock(bytes: Buffer): ImageReading {
  const mediaType = imageTypeOf(bytes);
  const size = mediaType === undefined ? undefined : imageSizeOf(bytes, mediaType);
  if (mediaType === undefined || size === undefined)
    return {
      type: "unusable",
      why:
        mediaType === undefined
          ? "is not a PNG, JPEG, GIF or WebP image."
          : "looks like an image, but its header is damaged, so it cannot be shown.",
    };
  if (bytes.length > maxImageBytes)
    return {
      type: "unusable",
      isTooLarge: true,
      why: `has ${bytes.length} bytes; images of at most ${maxImageBytes} bytes can be shown.`,
    };
  if (size.width > maxImageSide || size.height > maxImageSide)
    return {
      type: "unusable",
      isTooLarge: true,
      why: `is ${size.width} × ${size.height} pixels; at most ${maxImageSide} on a side can be shown.`,
    };
  const source = { type: "base64", media_type: mediaType, data: bytes.toString("base64") } as const;
  return { type: "image", block: { type: "image", source }, mediaType, size };
}
