/** How requests name a terminal. */
import type { TerminalRef } from '../gen/public/grantty/v1/terminal_pb.js';
import type { Target } from './gate.js';

/** An absent ref names nothing, like an empty id: the decision refuses it by its field. */
export function storedTarget(ref: TerminalRef | undefined): Extract<Target, { kind: 'stored' }> {
  return { kind: 'stored', owner: ref?.owner, id: ref?.id ?? '' };
}
