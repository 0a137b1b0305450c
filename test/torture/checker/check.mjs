// The whole judgement of a run, from files alone: terminals on disk, and what clients wrote down.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkEffects } from './effects.mjs';
import { checkInput } from './input.mjs';
import { readTerminal } from './log.mjs';
import { checkOutputs } from './outputs.mjs';
import { readRecords } from './records.mjs';
import { checkViews } from './views.mjs';

/** `archive` has the directories of deleted terminals as they were, by uid. */
export function check({ stateDir, records, archive }) {
  const problems = [];
  const terminals = new Map();
  const take = (dir) => {
    try {
      const terminal = readTerminal(dir);
      problems.push(...terminal.problems);
      const { uid, id } = terminal.meta;
      if (terminals.has(uid)) problems.push(`${id}: two directories of one uid`);
      terminals.set(uid, terminal);
    } catch (error) {
      problems.push(`${dir} cannot be read: ${error.message}`);
    }
  };
  for (const dir of terminalDirs(stateDir)) take(dir);
  const onDisk = new Set(terminals.keys());
  const archived = readdirSync(archive).filter((uid) => !onDisk.has(uid));
  for (const uid of archived) take(join(archive, uid));

  const lines = readRecords(records);
  const outputs = checkOutputs(lines, terminals);
  const views = checkViews(lines, terminals);
  const input = checkInput(lines, terminals);
  problems.push(...outputs.problems, ...views.problems, ...input.problems);
  problems.push(...checkEffects(lines, terminals, new Set(archived)));
  const events = [...terminals.values()].reduce((sum, one) => sum + one.events.length, 0);
  const counts = { terminals: terminals.size, deleted: archived.length, events };
  const calls = lines('closed').reduce((sum, one) => sum + one.calls, 0);
  const totals = {
    ...counts,
    ...outputs.totals,
    ...{ seen: views.compared, views: lines('view').length },
    ...{ ...input.totals, calls, retried: lines('retried').length },
  };
  return { problems, totals };
}

function terminalDirs(stateDir) {
  const below = (dir, name) =>
    list(dir).map((part) => join(dir, part, ...(name === undefined ? [] : [name])));
  return below(join(stateDir, 'home'), 'agent')
    .flatMap((dir) => below(dir, 'session'))
    .flatMap((dir) => below(dir, 'terminal'))
    .flatMap((dir) => below(dir, undefined));
}

function list(dir) {
  return existsSync(dir) ? readdirSync(dir).filter((name) => !name.startsWith('.')) : [];
}
