/** Where sessions get the right to each effect on a terminal. */
import type { Lease } from '../supervisor/api.js';

/** What an effect does; it decides which authority must hold. */
export type SessionEffect = 'write' | 'signal' | 'kill';

/** Asked right before each effect. May throw: then the effect does not happen. */
export interface LeaseSource {
  lease(effect: SessionEffect): Lease;
}

/** Every effect is allowed for as long as the process lives: for libraries, which decide elsewhere. */
export const unlimitedLeases: LeaseSource = {
  lease: (effect) => ({ id: `session-${effect}`, notAfter: Number.MAX_SAFE_INTEGER }),
};
