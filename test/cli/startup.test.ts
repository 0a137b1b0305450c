import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const src = fileURLToPath(new URL('../../src/', import.meta.url));

/** What a file loads at once: its imports of values, not those of types or at a later moment. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const statements = text.matchAll(/^(?:import|export)\s(?!type\b)([^;]*?)from '([^']+)';/gms);
  return [...statements]
    .filter(([, names = '']) => !isTypesOnly(names))
    .map(([, , specifier = '']) => specifier);
}

function isTypesOnly(names: string): boolean {
  const [, list] = /^\s*\{([^}]*)\}\s*$/s.exec(names) ?? [];
  return list?.split(',').every((name) => /^\s*(?:type\b.*)?$/.test(name)) ?? false;
}

/** Every file and package that parsing a command line loads. */
function loaded(file: string, seen = new Set<string>()): Set<string> {
  for (const specifier of importsOf(file)) {
    const isOurs = specifier.startsWith('.');
    const path = isOurs ? join(dirname(file), specifier.replace(/\.js$/, '.ts')) : specifier;
    if (seen.has(path)) continue;
    seen.add(path);
    if (isOurs) loaded(path, seen);
  }
  return seen;
}

describe('the start of ctx', () => {
  const all = [...loaded(join(src, 'cli/main.ts'))];

  it('loads one package: the parser', () => {
    expect(all.filter((one) => !one.startsWith(src) && !one.startsWith('node:'))).toEqual([
      'commander',
    ]);
  });

  it('loads nothing of ours but the command line and the pure domain', () => {
    const folders = all
      .filter((one) => one.startsWith(src))
      .map((one) => relative(src, one).split('/')[0]);
    expect([...new Set(folders)].sort()).toEqual(['cli', 'core']);
  });
});
