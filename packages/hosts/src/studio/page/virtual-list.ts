import { type ComponentChild, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface VirtualListProps<T> {
  readonly items: readonly T[];
  readonly label: string;
  /** Pixels of a row while only some of them are in the page. */
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  readonly row: (item: T) => ComponentChild;
}

/** Up to so many are all in the page, each as high as its text. */
const maxWhole = 120;
const margin = 12;

/** A list of links that the arrow keys walk through. Of a long one only the rows near the screen are in the page. */
export function VirtualList<T>({ items, label, rowHeight, keyOf, row }: VirtualListProps<T>): ComponentChild {
  const list = useRef<HTMLUListElement>(null);
  const isWhole = items.length <= maxWhole;
  const [first, last] = useWindow(list, { rowHeight, count: items.length, isWhole });
  const shown = items.slice(first, last);
  return h(
    "ul",
    {
      ref: list,
      class: isWhole ? "rows" : "rows virtual",
      "aria-label": label,
      style: isWhole ? {} : { height: `${items.length * rowHeight}px` },
      onKeyDown: moveFocus,
    },
    shown.map((item, at) =>
      h(
        "li",
        {
          key: keyOf(item),
          "aria-setsize": items.length,
          "aria-posinset": first + at + 1,
          style: isWhole ? {} : { top: `${(first + at) * rowHeight}px`, height: `${rowHeight}px` },
        },
        row(item),
      ),
    ),
  );
}

export function useWindow(
  list: { readonly current: HTMLUListElement | null },
  { rowHeight, count, isWhole }: { rowHeight: number; count: number; isWhole: boolean },
): readonly [number, number] {
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  useEffect(() => {
    if (isWhole) return;
    const measure = (): void => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / rowHeight) - margin);
      const last = Math.min(count, Math.max(first, Math.ceil((innerHeight - top) / rowHeight) + margin));
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    measure();
    // Whatever scrolls, the page or the box that the list is in.
    addEventListener("scroll", measure, { passive: true, capture: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure, { capture: true });
      removeEventListener("resize", measure);
    };
  }, [rowHeight, count, isWhole]);
  return isWhole ? [0, count] : range;
}

function moveFocus(event: KeyboardEvent): void {
  const step = new Map([
    ["ArrowDown", 1],
    ["ArrowUp", -1],
  ]).get(event.key);
  const item = (event.target as HTMLElement).closest("li");
  const next = step === 1 ? item?.nextElementSibling : item?.previousElementSibling;
  if (step === undefined || !(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.querySelector("a")?.focus();
}
