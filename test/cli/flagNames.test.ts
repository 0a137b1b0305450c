import type { Command } from 'commander';
import { describeFailure } from '../../src/cli/action.js';
import { grantOf } from '../../src/cli/commands/grantMint.js';
import { UsageError } from '../../src/cli/exitCode.js';
import { flagOfClaim, inFlags } from '../../src/cli/flagNames.js';
import { program } from '../../src/cli/program.js';
import { counted } from '../../src/core/counted.js';
import { fieldInvalid } from '../../src/core/errors.js';

describe('an error about a field', () => {
  it.each([
    ['lifetime', '--ttl: is wrong'],
    ['max_depth', '--max-depth: is wrong'],
    ['after_seq', '--after-seq: is wrong'],
    ['grants[0].resource.owner', '--resource (owner): is wrong'],
    ['grants[0].constraints.max_terminals', '--constraint max_terminals: is wrong'],
    ['idle', 'idle: is wrong'],
  ])('of a request, %s, names what was typed', (field, text) => {
    expect(describeFailure(fieldInvalid(field, 'is wrong'))).toBe(`FIELD_INVALID: ${text}`);
  });

  it.each([
    ['ttl', '--ttl: is wrong'],
    ['authorization_details[0].resource.owner', '--owner: is wrong'],
    ['authorization_details[0].constraints.signals[0]', '--constraint signals[0]: is wrong'],
  ])('of a token to be minted, %s, names its flag', (field, text) => {
    expect(inFlags(fieldInvalid(field, 'is wrong'), flagOfClaim)).toBe(text);
  });

  it('names the action that is none', async () => {
    const flags = { actions: 'terminal.read, terminal.kil' } as Parameters<typeof grantOf>[0];
    await expect(grantOf(flags)).rejects.toThrow(UsageError);
    await expect(grantOf(flags)).rejects.toThrow('"terminal.kil" is no action; known are');
  });
});

describe('a flag', () => {
  it("for a token's subject has the same names in every command", () => {
    const about = (command: Command): Command[] => [command, ...command.commands.flatMap(about)];
    const flags = about(program()).flatMap(({ options }) =>
      options.flatMap(({ short, long }) =>
        /^--sub/.test(long ?? '') ? [`${short}, ${long}`] : [],
      ),
    );
    expect(flags).toHaveLength(4);
    expect(new Set(flags)).toEqual(new Set(['--sub, --subject']));
  });
});

describe('a number of things', () => {
  it('is in the singular for one alone', () => {
    expect([0, 1, 2n].map((count) => counted(count, 'token'))).toEqual([
      '0 tokens',
      '1 token',
      '2 tokens',
    ]);
    expect(counted(3, 'policy', 'policies')).toBe('3 policies');
  });
});
