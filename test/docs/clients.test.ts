/** docs/clients.md against the contract. */
import { readFile } from 'node:fs/promises';
import { INPUT_WINDOW_BYTES } from '../../src/client/inputWindow.js';
import { errorReasons } from '../../src/core/errors.js';
import { MAX_METADATA_BYTES, MAX_STREAMS_PER_PRINCIPAL } from '../../src/core/limits.js';

const page = await readFile(new URL('../../docs/clients.md', import.meta.url), 'utf8');

describe('the page about clients', () => {
  it('says what to do for each reason there is, and names no other', () => {
    const [, errors = ''] = page.split('## Errors');
    const [table = ''] = errors.split('## Retry');
    const named = [...table.matchAll(/^\| ([A-Z_, ]+) \|/gm)].flatMap(([, cell = '']) =>
      cell.split(', '),
    );
    expect(named.sort()).toEqual([...errorReasons].sort());
  });

  it('states numbers as they are', () => {
    expect(page).toContain(`together: ${MAX_METADATA_BYTES / 1024} KiB`);
    expect(page).toContain(`takes ${MAX_STREAMS_PER_PRINCIPAL} streams`);
    expect(page).toContain(`no more than ${INPUT_WINDOW_BYTES / 1024} KiB`);
  });
});
