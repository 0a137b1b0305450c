import type { FileHandle } from 'node:fs/promises';
import { LineBlock } from '../../src/store/reader/lineBlock.js';

/** A file of which nothing else than reads is asked, each of which ends when the test says so. */
function fakeFile() {
  const reads: ((content: string) => void)[] = [];
  const read = (buffer: Buffer) =>
    new Promise((resolve) => {
      reads.push((content) => resolve({ bytesRead: buffer.write(content) }));
    });
  return { handle: { read } as unknown as FileHandle, reads };
}

describe('a block of lines', () => {
  it('is being read when it is asked for, so that it comes while another is looked at', async () => {
    const { handle, reads } = fakeFile();
    const reading = LineBlock.read(handle, 0);
    expect(reads).toHaveLength(1);
    reads[0]?.('one\ntwo\nthr');
    using block = await reading;
    expect(block).toMatchObject({ lineBytes: 8, isFull: false });
    expect(block.bytes.toString()).toBe('one\ntwo\nthr');
  });

  it('waits for a buffer in its turn, and gives it back whatever comes of it', async () => {
    const { handle, reads } = fakeFile();
    const blocks = Array.from({ length: 20 }, () => LineBlock.read(handle, 0));
    const together = reads.length;
    expect(together).toBeLessThan(20);
    for (const [i, reading] of blocks.entries()) {
      reads[i]?.(`${i}\n`);
      using block = await reading;
      expect(block.bytes.toString()).toBe(`${i}\n`);
    }
    expect(reads).toHaveLength(20);
    const failing = { read: () => Promise.reject(new Error('EIO')) } as unknown as FileHandle;
    for (let i = 0; i < 20; i++) {
      await expect(LineBlock.read(failing, 0)).rejects.toThrow('EIO');
    }
    const after = fakeFile();
    const again = Array.from({ length: together }, () => LineBlock.read(after.handle, 0));
    expect(after.reads).toHaveLength(together);
    for (const end of after.reads) end('');
    for (const block of again) (await block)[Symbol.dispose]();
  });
});
