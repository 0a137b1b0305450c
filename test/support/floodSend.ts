/** A send whose program prints far faster than it can be rendered: the same for every way to a session. */
import type { DrivenSession, SessionDriver } from './sessionDriver.js';

/** Lines printed; 20,000,000 are 169 MB. */
const LINES = Number(process.env.GRANTTY_FLOOD_LINES ?? 2_000_000);
/** Milliseconds from the prompt to the result, on a machine that does nothing else. */
const WITHIN_MS = 1_000;
/** Milliseconds that a machine busy with other tests may add. */
const BUSY_MS = 4_000;
/** MiB by which a flood of any length may raise the memory of all that takes part, client included. */
const MEMORY_MIB = 256;
/** Of the shell's clock, printed with the prompt, in seconds. */
const PROMPT_TIME = /@(\d+)[.,](\d{6})@ $/;

/** @param carrier - how the calls travel, for the test's name */
export function floodSend(carrier: string, open: () => Promise<SessionDriver>): void {
  describe(`a send of seq 1 ${LINES}, ${carrier}`, () => {
    let driver: SessionDriver;
    let session: DrivenSession;

    beforeAll(async () => {
      driver = await open();
      session = await driver.spawn();
      await session.send("PS1='@$EPOCHREALTIME@ '");
    });

    afterAll(() => driver[Symbol.asyncDispose]());

    it('comes back soon after the prompt, with the last lines, in bounded memory', async () => {
      const before = process.memoryUsage().rss;
      let peak = before;
      const watching = setInterval(() => {
        peak = Math.max(peak, process.memoryUsage().rss);
      }, 20);
      const { text, waitReason, truncated } = await session.send(`seq 1 ${LINES}`, {
        timeoutMs: 600_000,
      });
      const arrived = performance.timeOrigin + performance.now();
      clearInterval(watching);
      expect(waitReason).toBe('stdin_read');
      const lines = text.split('\n');
      const last = lines.slice(-1_001, -1).map(Number);
      expect(last).toEqual(Array.from({ length: 1_000 }, (_, at) => LINES - 999 + at));
      // Older ones may be left out; then that is said.
      const first = lines.indexOf('1');
      if (first < 0 || lines.length - first < LINES) expect(truncated).toBe(true);

      const [, seconds, micros] = PROMPT_TIME.exec(text) ?? [];
      const late = arrived - (Number(seconds) * 1_000 + Number(micros) / 1_000);
      const grown = (peak - before) / 1024 / 1024;
      process.stderr.write(
        `seq 1 ${LINES}, ${carrier}: ${late.toFixed(0)} ms after the prompt, ${grown.toFixed(0)} MiB more at the peak\n`,
      );
      expect(late).toBeLessThan(WITHIN_MS + BUSY_MS);
      expect(grown).toBeLessThan(MEMORY_MIB);
      const page = await session.read({ count: 3 });
      expect(page.text).toMatch(new RegExp(`^${LINES - 1}\\n${LINES}\\n@`));
    }, 660_000);

    it('leaves nothing of it to the next send', async () => {
      const { text } = await session.send('echo after');
      expect(text).toMatch(/^echo after\nafter\n@.*@ $/);
    });
  });
}
