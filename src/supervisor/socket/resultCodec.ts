/** Results of the supervisor's methods on their way across, but for records. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type * as wire from '../../gen/internal/grantty/internal/v1/records_pb.js';
import type {
  EndResult,
  ForegroundState,
  LaunchPlan,
  OwnerDefaults,
  SupervisorInfo,
} from '../api.js';
import { defined, word } from './arrival.js';
import { decodeExit } from './recordCodec.js';

const isolationModes = ['by-uid', 'fixed-user', 'shared-uid'] as const;
const waits = ['yes', 'no', 'unknown'] as const;

export function decodeInfo(info: wire.Info): SupervisorInfo {
  const { $typeName: _, $unknown: __, isolation, life, ...rest } = info;
  return {
    ...rest,
    isolation: word(isolationModes, isolation),
    life: defined({ idleMs: life?.idleMs, lifetimeMs: life?.lifetimeMs }),
  };
}

export function encodeDefaults({
  command,
  cwd,
}: OwnerDefaults): MessageInitShape<typeof wire.DefaultsSchema> {
  return { command: [...command], cwd };
}

export function decodeDefaults({ command, cwd }: wire.Defaults): OwnerDefaults {
  return { command, cwd };
}

export function encodePlan({
  command,
  cwd,
  env,
}: LaunchPlan): MessageInitShape<typeof wire.LaunchPlanSchema> {
  return { command: [...command], cwd, env };
}

export function decodePlan({ command, cwd, env }: wire.LaunchPlan): LaunchPlan {
  return { command, cwd, env };
}

export function encodeEnd(result: EndResult): MessageInitShape<typeof wire.EndResultSchema> {
  return { ...result, survivors: result.survivors.map((survivor) => ({ ...survivor })) };
}

export function decodeEnd(result: wire.EndResult): EndResult {
  const { survivors, quiescent, certain, exit } = result;
  return defined<EndResult>({
    survivors: survivors.map(({ pid, comm }) => ({ pid, comm })),
    quiescent,
    certain,
    exit: exit && decodeExit(exit),
  });
}

export function decodeForeground(state: wire.Foreground): ForegroundState {
  const { processGroup, shellInForeground, waitingForInput } = state;
  return defined<ForegroundState>({
    processGroup,
    shellInForeground,
    waitingForInput: word(waits, waitingForInput),
  });
}
