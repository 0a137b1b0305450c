// What runs in the terminals of a torture run, and what each is bound to print.

/** Scripts keep their own complaints (a killed child) off the terminal. */
const shell = (script) => ['sh', '-c', `exec 2>/dev/null; ${script}`];

const numbers = (count, line) => {
  let text = '';
  for (let i = 1; i <= count; i += 1) text += line(i);
  return Buffer.from(text, 'latin1');
};

/**
 * `command` of the arguments; `output` that it prints when nobody ends it, and its exit code then.
 * Without `output` it never ends by itself.
 */
export const programs = {
  flood: {
    command: ({ count }) => shell(`stty -opost; exec seq 1 ${count}`),
    output: ({ count }) => numbers(count, (i) => `${i}\n`),
    exitCode: () => 0,
  },
  bytes: {
    // No text: none of it is valid UTF-8.
    command: ({ count }) => shell(`stty -opost; seq 1 ${count} | tr 0-9 '\\200-\\211'`),
    output: ({ count }) =>
      numbers(count, (i) => `${i}\n`).map((byte) => (byte === 10 ? 10 : byte - 0x30 + 0x80)),
    exitCode: () => 0,
  },
  slow: {
    command: ({ count, code }) =>
      shell(
        `stty -opost; i=0; while [ $i -lt ${count} ]; do i=$((i+1)); echo "slow $i"; sleep 0.05; done; exit ${code}`,
      ),
    output: ({ count }) => numbers(count, (i) => `slow ${i}\n`),
    exitCode: ({ code }) => code,
  },
  brief: {
    command: ({ text, code }) => shell(`printf %s '${text}'; exit ${code}`),
    output: ({ text }) => Buffer.from(text, 'latin1'),
    exitCode: ({ code }) => code,
  },
  /** Processes that leave the session; only whoever ends the whole tree is rid of them. */
  tree: {
    command: () =>
      shell('setsid sleep 1000 & nohup sleep 1000 >/dev/null & echo up; exec sleep 1000'),
  },
  /** Prints what is typed, byte for byte. */
  echo: { command: () => shell('stty raw -echo; printf ready; exec cat') },
  /** Prints a line for each SIGUSR1. */
  count: {
    command: () =>
      shell(
        'stty -opost; n=0; trap \'n=$((n+1)); echo "usr1 $n"\' USR1; echo ready; while :; do sleep 0.2; done',
      ),
  },
};

/** One that ends by itself, with arguments by chance. */
export function finiteProgram(random) {
  const name = random.pick(['flood', 'flood', 'bytes', 'slow', 'slow', 'brief', 'brief']);
  const args = {
    flood: () => ({ count: random.int(1, 400_000) }),
    bytes: () => ({ count: random.int(1, 200_000) }),
    slow: () => ({ count: random.int(1, 200), code: random.int(0, 100) }),
    brief: () => ({ text: random.letters(random.int(0, 300)), code: random.int(0, 100) }),
  }[name]();
  return { name, args };
}
