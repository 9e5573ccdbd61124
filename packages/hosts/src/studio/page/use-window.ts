import { useEffect, useState } from "preact/hooks";

const margin = 12;

/** Of a long list, which rows are near the screen: from the first up to the second. */
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
