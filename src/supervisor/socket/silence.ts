/** Notices a supervisor that holds its connection and says nothing: frozen, or stuck in something. */
import type { ControlClient } from './controlClient.js';
import { SILENCE_MS, unavailable } from './protocol.js';

/**
 * Looks in one silence. Counted, not timed: a process that was frozen itself finds one look due when
 * it goes on, and what arrived meanwhile is read before the next.
 */
const LOOKS = 4;

/**
 * Asks something at every look, and ends the connection, and with it every call that waits, when
 * nothing at all has come for `silenceMs`. Stops with the connection.
 */
export function endWhenSilent(client: ControlClient, silenceMs = SILENCE_MS): void {
  let heard = client.heard;
  let missed = 0;
  let isAsking = false;
  const look = () => {
    missed = heard === client.heard ? missed + 1 : 0;
    heard = client.heard;
    if (missed >= LOOKS) {
      client.close(unavailable(`the supervisor has said nothing for ${silenceMs} ms`));
      return;
    }
    if (isAsking) return;
    isAsking = true;
    const answered = () => {
      isAsking = false;
    };
    client.call({ case: 'info', value: {} }).then(answered, answered);
  };
  const looking = setInterval(look, silenceMs / LOOKS);
  looking.unref();
  void client.closed.then(() => clearInterval(looking));
}
