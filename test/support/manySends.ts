/** Many sends in a row to one shell: the same for every way to a session. */
import type { DrivenSession, SessionDriver } from './sessionDriver.js';

/** Fewer than the thousand that count, where many tests share a machine. */
const SENDS = Number(process.env.GRANTTY_SENDS ?? 200);
/** Milliseconds for one of them, on such a machine. */
const EACH_MS = 1_000;
/** Of the shell's clock, printed with the prompt, in seconds. */
const ANSWER = /^echo value \$\(\(\d+\*3\)\)\nvalue (\d+)\n@(\d+)[.,](\d{6})@ $/;

/** @param carrier - how the calls travel, for the test's name */
export function manySends(carrier: string, open: () => Promise<SessionDriver>): void {
  describe(`${SENDS} sends in a row, ${carrier}`, () => {
    let driver: SessionDriver;
    let session: DrivenSession;

    beforeAll(async () => {
      driver = await open();
      session = await driver.spawn();
      await session.send("PS1='@$EPOCHREALTIME@ '");
    });

    afterAll(() => driver[Symbol.asyncDispose]());

    it(
      'come back for the right reason, each with all of its output and nothing else',
      async () => {
        const late: number[] = [];
        const wrong: unknown[] = [];
        for (let index = 0; index < SENDS; index += 1) {
          const { text, waitReason } = await session.send(`echo value $((${index}*3))`);
          const arrived = performance.timeOrigin + performance.now();
          const [, value, seconds, micros] = ANSWER.exec(text) ?? [];
          if (waitReason !== 'stdin_read' || Number(value) !== index * 3) {
            wrong.push({ index, waitReason, text });
          }
          late.push(arrived - (Number(seconds) * 1_000 + Number(micros) / 1_000));
        }
        expect(wrong).toEqual([]);
        late.sort((a, b) => a - b);
        const at = (share: number) => late[Math.floor(late.length * share)]?.toFixed(1);
        process.stderr.write(
          `${SENDS} sends, ${carrier}: from the prompt to the result p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
        );
        // The prompt’s mark tells, not 3 s of silence.
        expect(Number(at(0.5))).toBeLessThan(1_000);
      },
      30_000 + SENDS * EACH_MS,
    );
  });
}
