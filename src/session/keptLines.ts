/** The lines of a terminal as one list: those that scrolled away, then those on the screen. */
import type { LineView } from './linePage.js';
import { type LineStore, MAX_SCROLLBACK_LINES } from './lineStore.js';

/** What is on the screen counts towards the limit too. */
export function keptLines(stored: LineStore, shown: readonly string[]): LineView {
  const hidden = Math.max(0, stored.length + shown.length - MAX_SCROLLBACK_LINES);
  return {
    droppedLines: stored.dropped + hidden,
    totalLines: stored.length + shown.length - hidden,
    line: (index) => {
      const at = index + hidden;
      return at < stored.length ? stored.at(at) : (shown[at - stored.length] ?? '');
    },
  };
}
