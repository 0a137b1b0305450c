import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { endingNotes } from '../../src/cli/sendEnding.js';
import {
  SendResultSchema,
  WaitReason,
} from '../../src/gen/public/grantty/v1/session_service_pb.js';

function notes(result: MessageInitShape<typeof SendResultSchema>, cut = false): readonly string[] {
  return endingNotes(create(SendResultSchema, result), cut);
}

describe('the end of a send', () => {
  it('is no word where the program was seen to be ready and all of it was printed', () => {
    expect(notes({ waitReason: WaitReason.STDIN_READ, viewport: '$ ' })).toEqual([]);
  });

  it.each([
    ['only silent', { waitReason: WaitReason.INFERRED_IDLE }, 'only silent: it may go on'],
    ['not back in time', { waitReason: WaitReason.TIMEOUT }, 'the time was up: it may go on'],
    ['over', { waitReason: WaitReason.SESSION_EXIT }, 'the session has exited'],
    ['ended by something newer', { waitReason: 99 as WaitReason }, 'does not know (99)'],
  ])('says in one line that the program was %s', (_, result, text) => {
    const [line, ...more] = notes(result);
    expect(line).toContain(text);
    expect(line).not.toContain('\n');
    expect(more).toEqual([]);
  });

  it('tells how the session ended', () => {
    const exited = (value: { exitCode?: number; signal?: string }) =>
      notes({
        waitReason: WaitReason.SESSION_EXIT,
        sessionStatus: { kind: { case: 'exited', value } },
      });
    expect(exited({ exitCode: 3 })).toEqual(['the session has exited with 3']);
    expect(exited({ signal: 'SIGHUP' })).toEqual(['the session was ended by SIGHUP']);
    expect(exited({})).toEqual(['the session has exited']);
  });

  it.each([
    ['in the result', { truncated: true }, false],
    ['in a delta', {}, true],
    ['by an emulator that was behind', { skippedFromSeq: 7n }, false],
  ])('says that output was cut: %s', (_, result, cut) => {
    const [line, ...more] = notes({ waitReason: WaitReason.STDIN_READ, ...result }, cut);
    expect(line).toContain('the output was cut');
    expect(more).toEqual([]);
  });
});
