import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bashCompletion } from '../../src/cli/completion/bash.js';
import { commandNodes } from '../../src/cli/completion/commandTree.js';
import { fishCompletion } from '../../src/cli/completion/fish.js';
import { zshCompletion } from '../../src/cli/completion/zsh.js';
import { program } from '../../src/cli/program.js';
import { onPath, skipAloud } from '../support/skipAloud.js';

const nodes = commandNodes(program());
const places = nodes.map(({ path }) => path.join(' '));

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'grantty-completion-'));
  writeFileSync(join(dir, 'bash'), bashCompletion(nodes));
  writeFileSync(join(dir, 'zsh'), zshCompletion(nodes));
  writeFileSync(join(dir, 'fish'), fishCompletion(nodes));
  // What the scripts ask for what there is.
  const answer =
    'case "$1" in terminal) echo terminal-a; echo terminal-b ;; context) echo dev ;; esac';
  writeFileSync(join(dir, 'ctx'), `#!/bin/sh\n${answer}\n`);
  chmodSync(join(dir, 'ctx'), 0o755);
});
afterAll(() => rmSync(dir, { recursive: true }));

function run(shell: string, script: string): string[] {
  const output = execFileSync(shell, ['-c', script], {
    encoding: 'utf8',
    cwd: dir,
    env: { PATH: `${dir}:${process.env.PATH}`, HOME: dir },
  });
  return output.split('\n').filter(Boolean);
}

/** What completes the last word; the last one may be empty. */
const shells: Readonly<Record<string, (words: readonly string[]) => string[]>> = {
  bash: (words) =>
    run(
      'bash',
      `. ./bash; COMP_WORDS=(ctx ${words.map((word) => `'${word}'`).join(' ')})
       COMP_CWORD=${words.length}; _ctx; printf '%s\n' "\${COMPREPLY[@]}"`,
    ),
  // Its functions of the line editor, without one: they print what they were to offer.
  zsh: (words) =>
    run(
      'zsh',
      `compdef() { : }; _default() { : }
       compadd() { shift; print -l -- \${(M)@:#$PREFIX*} }
       _files() { print -l -- \${(M)$(print -l *):#$PREFIX*} }
       _describe() { [[ $1 == -o ]] && shift; local name; for name in "\${(@P)2}"; do
         name=\${name%%:*}; [[ $name == $PREFIX* ]] && print -- $name; done; true }
       source ./zsh; words=(ctx ${words.map((word) => `'${word}'`).join(' ')})
       CURRENT=${words.length + 1}; PREFIX=$words[CURRENT]; _ctx`,
    ),
  fish: (words) =>
    run('fish', `source ./fish; complete -C 'ctx ${words.join(' ')}'`).map(
      (line) => line.split('\t')[0] ?? '',
    ),
};

describe('the commands as completion sees them', () => {
  it('are all that the parser has, aliases too', () => {
    for (const place of [
      '',
      'terminal',
      'terminal ls',
      'terminal logs',
      'grant mint',
      'completion',
    ])
      expect(places).toContain(place);
  });

  it('say what stands for a value', () => {
    const values = (place: string, flag: string) =>
      nodes
        .find(({ path }) => path.join(' ') === place)
        ?.options.find(({ flags }) => flags.includes(flag))?.values;
    expect(values('terminal list', '--state')).toEqual(['created', 'running', 'exited', 'error']);
    expect(values('terminal list', '--json')).toBe('none');
    expect(values('terminal list', '--ca')).toBe('file');
    expect(values('serve', '--state-dir')).toBe('directory');
    expect(values('terminal list', '--context')).toBe('context');
    expect(nodes.find(({ path }) => path.join(' ') === 'terminal attach')?.argument).toBe(
      'terminal',
    );
  });
});

describe.each(Object.keys(shells))('completion of %s', (shell) => {
  const complete = (...words: string[]) => shells[shell]?.(words) ?? [];

  it.each([
    ['commands', ['ter'], ['terminal']],
    ['commands below a group', ['terminal', 'sta'], ['start', 'status']],
    ['options', ['terminal', 'list', '--js'], ['--json']],
    [
      'options after others and their values',
      ['terminal', 'ls', '--agent', 'run', '--js'],
      ['--json'],
    ],
    ['values of an option', ['terminal', 'list', '--state', 'e'], ['error', 'exited']],
    ['values of an argument', ['completion', 'z'], ['zsh']],
    ['terminals', ['terminal', 'attach', 'term'], ['terminal-a', 'terminal-b']],
    ['contexts of an argument', ['context', 'use', ''], ['dev']],
    ['contexts of an option', ['terminal', 'list', '--context', ''], ['dev']],
    ['files', ['terminal', 'list', '--ca', 'zs'], ['zsh']],
  ])('offers %s', (_, words, expected) => {
    if (!onPath(shell)) return skipAloud(`there is no ${shell} here`);
    expect(complete(...words).sort()).toEqual(expected);
  });

  it('offers none of ours within the command that is run', () => {
    if (!onPath(shell)) return skipAloud(`there is no ${shell} here`);
    expect(complete('terminal', 'run', 'a', '--', 'ls', '--js')).toEqual([]);
  });
});
