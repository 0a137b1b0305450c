/** Who watches which terminal without being attached: the supervisor knows of attachments only. */
import { randomUUID } from 'node:crypto';
import type { VerifiedToken } from '../auth/token.js';
import type { AttachmentInfo, TerminalSnapshot } from '../supervisor/api.js';

export class WatcherList {
  readonly #byUid = new Map<string, Set<AttachmentInfo>>();

  of({ record }: TerminalSnapshot): readonly AttachmentInfo[] {
    return [...(this.#byUid.get(record.uid) ?? [])];
  }

  /** Disposing takes the watcher off the list. */
  add(
    { record: { uid } }: TerminalSnapshot,
    { subject, actors }: VerifiedToken,
    kind: AttachmentInfo['kind'],
    since: number,
  ): Disposable {
    const [actor] = actors;
    const watcher: AttachmentInfo = {
      attachmentId: randomUUID(),
      kind,
      subject,
      ...(actor !== undefined && { actor }),
      since,
      mode: 'read',
    };
    const watchers = this.#byUid.get(uid) ?? new Set();
    this.#byUid.set(uid, watchers.add(watcher));
    return {
      [Symbol.dispose]: () => {
        watchers.delete(watcher);
        if (watchers.size === 0 && this.#byUid.get(uid) === watchers) this.#byUid.delete(uid);
      },
    };
  }
}
