/** ReadScrollback, GetScreen and FindText: what a person would see, of any terminal. */
import { fieldInvalid } from '../core/errors.js';
import type { SessionService } from '../gen/public/grantty/v1/session_service_pb.js';
import { MAX_MATCHES } from '../session/findText.js';
import { MAX_PAGE_LINES } from '../session/linePage.js';
import type { ScreenKey } from '../session/screens.js';
import type { ServerContext } from './context.js';
import { known } from './fields.js';
import type { Ask, Permit } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform, stored } from './perform.js';
import { storedTarget } from './refs.js';
import { screenFormatOf, toSkipped } from './sessionWire.js';
import { toSize } from './wire.js';

type Calls = Pick<
  Required<Handlers<typeof SessionService>>,
  'readScrollback' | 'getScreen' | 'findText'
>;

export function sessionScreens({ gate, sessions: { screens } }: ServerContext): Calls {
  return {
    readScrollback(request, call) {
      return perform(gate, callerOf(call), readAsk(request), async (permit) => {
        const { offset, count } = request;
        atMost('count', count, MAX_PAGE_LINES);
        const asked = { offset, ...(count > 0 && { count }) };
        const page = await screens.ask(keyOf(permit), 'page', asked);
        const { text, totalLines, lineBegin, lineEnd, truncated, throughSeq } = page;
        const counts = { totalLines, lineBegin, lineEnd, throughSeq: BigInt(throughSeq) };
        return { text, truncated, ...counts, ...toSkipped(page) };
      });
    },

    getScreen(request, call) {
      return perform(gate, callerOf(call), readAsk(request), async (permit) => {
        const format =
          request.format === undefined ? 'text' : known('format', screenFormatOf(request.format));
        const state = await screens.ask(keyOf(permit), 'screen', { format });
        const { screen, size, cursorColumn, cursorRow, cursorVisible, alternateScreen } = state;
        return {
          screen,
          size: toSize(size),
          cursorColumn,
          cursorRow,
          cursorVisible,
          alternateScreen,
          windowTitle: state.title,
          throughSeq: BigInt(state.throughSeq),
          ...toSkipped(state),
        };
      });
    },

    findText(request, call) {
      return perform(gate, callerOf(call), readAsk(request), async (permit) => {
        const { pattern, maxMatches } = request;
        atMost('max_matches', maxMatches, MAX_MATCHES);
        const asked = { pattern, ...(maxMatches > 0 && { maxMatches }) };
        const found = await screens.ask(keyOf(permit), 'find', asked);
        const { matches, truncated, totalLines, throughSeq } = found;
        const answer = { matches: [...matches], truncated, totalLines };
        return { ...answer, throughSeq: BigInt(throughSeq), ...toSkipped(found) };
      });
    },
  };
}

function readAsk(request: { readonly terminal?: Parameters<typeof storedTarget>[0] }): Ask {
  return { action: 'terminal.read', target: storedTarget(request.terminal) };
}

function keyOf(permit: Permit): ScreenKey {
  const { owner, id, uid } = stored(permit).record;
  return { owner, id, uid };
}

function atMost(field: string, value: number, max: number): void {
  if (value > max) throw fieldInvalid(field, `must be 0 to ${max}`);
}
